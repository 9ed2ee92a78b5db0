"""A course in one line: as long as asked for, high where the values are, and honest about what was not looked at."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from freestone.reports.sparkline import ASCII_BARS, BARS, by_time, course

values = st.lists(st.floats(0, 1e9, allow_nan=False, allow_subnormal=False), max_size=200)
points = st.lists(st.tuples(st.floats(0, 100), st.floats(0, 1e6)), min_size=1, max_size=60).map(
    lambda found: sorted(found, key=lambda each: each[0])
)


@given(values, st.integers(1, 60), st.booleans())
def test_it_is_no_longer_than_asked_for_and_highest_where_the_largest_is(
    values: list[float], columns: int, ascii_only: bool
) -> None:
    bars = ASCII_BARS if ascii_only else BARS
    line = course(values, columns, ascii_only=ascii_only)
    assert len(line) == min(columns, len(values))
    assert set(line) <= set(bars)
    if values and max(values) > 0:
        assert bars[-1] in line


def test_a_share_shows_its_largest_value() -> None:
    assert course([0, 7, 0, 0, 0, 3], 3) == "█▁▄"
    assert course([0, 0], 10) == "▁▁"


@given(points, st.integers(1, 60))
def test_equal_times_have_equal_room_and_no_value_is_made_up(points: list[tuple[float, float]], stretches: int) -> None:
    found = by_time(points, stretches)
    seen = [value for _, value in points]
    assert len(found) == stretches
    assert set(found) <= set(seen)
    assert max(found) == max(seen)


def test_where_nobody_looked_stands_what_was_seen_last() -> None:
    assert by_time([(0.0, 1.0), (0.9, 5.0), (1.0, 2.0)], 4) == [1.0, 1.0, 1.0, 5.0]
