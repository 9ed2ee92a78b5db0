"""Clocks that cannot both be right are told of, and no others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from freestone.experiments.clocks import MOST_APART_S, apart_s, told

GIVEN = datetime(2026, 11, 26, 12, tzinfo=UTC)
NOW = GIVEN + timedelta(hours=1)


def _after(seconds: float) -> str:
    return (GIVEN + timedelta(seconds=seconds)).isoformat()


def test_what_is_started_before_it_is_ordered_or_after_now_is_told() -> None:
    assert apart_s(GIVEN.isoformat(), NOW, [_after(-300), _after(10)]) == 300
    assert apart_s(GIVEN.isoformat(), NOW, [_after(3600 + 90)]) == 90
    assert told(90.4) == "its clock is 90 s apart from this one; the times of day in its records are its own"


def test_no_trial_and_no_time_say_nothing() -> None:
    assert apart_s(GIVEN.isoformat(), NOW, []) is None
    assert apart_s(GIVEN.isoformat(), NOW, ["yesterday"]) is None
    assert apart_s("", NOW, [_after(-300)]) is None


@given(st.lists(st.floats(0, 3600), max_size=5), st.floats(-MOST_APART_S, MOST_APART_S))
def test_a_clock_within_a_minute_is_right(started: list[float], off: float) -> None:
    assert apart_s(GIVEN.isoformat(), NOW, [_after(each + off) for each in started]) is None


@given(st.floats(3600 + MOST_APART_S + 1, 1e6), st.sampled_from([-1, 1]))
def test_a_clock_that_is_far_off_is_never_taken_for_right(off: float, side: int) -> None:
    assert apart_s(GIVEN.isoformat(), NOW, [_after(1800 + side * off)]) is not None
