"""What is prescribed for a goal: nothing that loses, as far as is known, what the goal wants kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from freestone.doctor import words
from freestone.doctor.verdict import PRICE, Tried, Verdict, helps
from freestone.records.schema import Ratio

VALUES = st.floats(0.2, 5.0)
WIDTHS = st.floats(1.001, 2.0)


def ratio(value: float, width: float) -> Ratio:
    low, high = value / width, value * width
    return Ratio(value=value, low=low, high=high, pairs=6, different=not low <= 1 <= high)


def tried(time: Ratio, memory: Ratio) -> Tried:
    return Tried("arm", None, time, memory, None)


@given(VALUES, WIDTHS, VALUES, WIDTHS)
def test_a_balanced_cure_loses_in_neither_by_the_estimate_either(
    time: float, time_width: float, memory: float, memory_width: float
) -> None:
    """A ratio of 1.26 not told apart from 1 counted as 1: half the memory at that price was called balanced."""
    arm = tried(ratio(time, time_width), ratio(memory, memory_width))
    if helps(arm, "balanced"):
        assert max(time, memory) <= PRICE
        assert arm.gains


def test_the_goal_says_what_may_be_lost() -> None:
    costly = tried(ratio(1.26, 1.4), ratio(0.5, 1.01))
    assert not helps(costly, "balanced")
    assert helps(costly, "memory")
    assert not helps(costly, "time")


def test_memory_is_called_by_what_was_measured() -> None:
    """Of a program whose memory stays, the figure is RSS at its end, and was called its peak."""
    arm = tried(ratio(1.0, 1.1), ratio(0.5, 1.01))
    at_end = Verdict("memory", [arm], arm, [arm], "end_rss_kib")
    assert "memory at the end 0.50" in words.verdict(at_end, width=200)
    assert "peak" not in words.verdict(at_end, width=200)
