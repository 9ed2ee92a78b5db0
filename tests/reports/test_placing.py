"""Names beside their points: what they cover, and what they need not."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.reports import placing

SIDE = 300
inside = st.floats(0, SIDE)
points = st.dictionaries(st.text("abcdefgh", min_size=3, max_size=16), st.tuples(inside, inside), max_size=14)


@given(points)
def test_every_name_has_a_place_of_those_there_are(spots: dict[str, placing.Point]) -> None:
    found = placing.places(spots, SIDE, SIDE)
    assert set(found) == set(spots)
    assert set(found.values()) <= set(placing._CANDIDATES)


def test_thirteen_points_in_a_corner_keep_their_names_apart() -> None:
    spots = {f"allocator-{i:02}": (40.0 + 7 * (i % 4), 230.0 + 6 * (i // 4)) for i in range(13)}
    found = placing.places(spots, SIDE, SIDE)
    boxes = {name: placing.extent(name, spots[name], found[name]) for name in spots}
    assert [(a, b) for a, b in itertools.combinations(boxes, 2) if placing.covered(boxes[a], boxes[b])] == []
    assert all(box[0] >= 0 and box[2] <= SIDE for box in boxes.values())


def test_a_point_by_itself_has_its_name_beside_it() -> None:
    (offset,) = placing.places({"glibc": (150, 150)}, SIDE, SIDE).values()
    assert not placing.is_far(offset)


@given(st.tuples(*[st.floats(-50, 50)] * 4), st.tuples(*[st.floats(-50, 50)] * 4))
def test_what_two_boxes_share_is_the_same_seen_from_both(one: placing.Box, other: placing.Box) -> None:
    assert placing.covered(one, other) == placing.covered(other, one) >= 0


spots_of_lines = st.lists(st.floats(-50, 400), min_size=1, max_size=25)


@given(spots_of_lines)
def test_names_keep_their_order_and_their_distance(spots: list[float]) -> None:
    moved = placing.spread(spots, 14, 14 * 30)
    assert sorted(range(len(spots)), key=lambda i: spots[i]) == sorted(range(len(spots)), key=lambda i: moved[i])
    ordered = sorted(moved)
    assert all(second - first >= 14 - 1e-6 for first, second in itertools.pairwise(ordered))
    assert ordered[0] >= -1e-6
    assert ordered[-1] <= 14 * 30 + 1e-6


@given(st.lists(st.integers(0, 20), unique=True, min_size=1))
def test_names_that_stand_apart_stay(steps: list[int]) -> None:
    spots = [14.0 * step for step in steps]
    assert placing.spread(spots, 14, 14 * 20) == pytest.approx(spots)
