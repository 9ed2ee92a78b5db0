"""What Optuna proposes: points of the room, none twice, the same for the same records."""

from __future__ import annotations

import random

import pytest

from freestone.tuning import proposals, space
from freestone.tuning.knobs import KNOBS
from freestone.tuning.proposals import Tried
from freestone.tuning.space import Point, Room

ROOM: Room = {name: KNOBS[name] for name in ("glibc", "jemalloc")}
SMALL: Room = {"tbb": KNOBS["tbb"]}


def drawn(count: int, seed: int) -> list[Point]:
    chance = random.Random(seed)
    found: dict[Point, None] = {}
    while len(found) < count:
        found[space.draw(ROOM, lambda name, values, ordered: chance.choice(values))] = None
    return list(found)


def judged(point: Point) -> Tried:
    """jemalloc is better, the better the fewer its arenas."""
    values = dict(point.values)
    worth = {"1": 0.3, "2": 0.2, "4": 0.1}.get(values.get("narenas", ""), 0.0)
    return Tried(point, (-worth, 0.0))


def test_points_are_new_and_each_is_proposed_once() -> None:
    tried = [judged(each) for each in drawn(15, 1)]
    found = proposals.propose(ROOM, tried, 10, "a")
    assert len(set(found)) == 10
    assert not set(found) & {each.point for each in tried}
    assert all(space.read(ROOM, each.allocator, space.environment(ROOM, each)) == each for each in found)


def test_the_same_records_have_the_same_proposals() -> None:
    tried = [judged(each) for each in drawn(20, 2)]
    assert proposals.propose(ROOM, tried, 6, "b") == proposals.propose(ROOM, tried, 6, "b")


def test_what_has_failed_is_no_hindrance() -> None:
    tried = [Tried(each, None) for each in drawn(20, 3)]
    assert len(proposals.propose(ROOM, tried, 4, "c")) == 4


@pytest.mark.long
def test_a_room_that_is_exhausted_has_nothing_new() -> None:
    found = proposals.propose(SMALL, [], 100, "d")
    assert len(found) == len(set(found)) == 6
    assert proposals.propose(SMALL, [Tried(each, (0.0, 0.0)) for each in found], 3, "e") == []


def test_what_has_done_well_is_proposed_more_often() -> None:
    tried = [judged(each) for each in drawn(40, 4)]
    found = [each for number in range(4) for each in proposals.propose(ROOM, tried, 8, f"f/{number}")]
    promising = sum(dict(each.values).get("narenas") in ("1", "2") for each in found)
    by_chance = len(found) / 2 / 2
    assert promising > 1.3 * by_chance
