"""What is prescribed for a goal: nothing that loses, as far as is known, what the goal wants kept."""

from __future__ import annotations

import math
from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from freestone.analysis.pareto import PRICE, Goal
from freestone.doctor import words
from freestone.doctor.diagnosis import enough_s
from freestone.doctor.remedies import Remedy
from freestone.doctor.verdict import LEAST_ROUNDS, Tried, Verdict
from freestone.records.schema import Ratio, TrialRecord

GOALS: tuple[Goal, ...] = ("time", "memory", "balanced")

VALUES = st.floats(0.2, 5.0)
WIDTHS = st.floats(1.001, 2.0)


def ratio(value: float, width: float) -> Ratio:
    low, high = value / width, value * width
    return Ratio(value=value, low=low, high=high, pairs=6, different=not low <= 1 <= high)


def tried(time: Ratio, memory: Ratio) -> Tried:
    return Tried("arm", time, memory, None)


@given(VALUES, WIDTHS, VALUES, WIDTHS)
def test_a_balanced_cure_loses_in_neither_by_the_estimate_either(
    time: float, time_width: float, memory: float, memory_width: float
) -> None:
    """A ratio of 1.26 not told apart from 1 counted as 1: half the memory at that price was called balanced."""
    arm = tried(ratio(time, time_width), ratio(memory, memory_width))
    if arm.helps("balanced"):
        assert max(time, memory) <= PRICE
        assert arm.gains


def test_the_goal_says_what_may_be_lost() -> None:
    costly = tried(ratio(1.26, 1.4), ratio(0.5, 1.01))
    assert not costly.helps("balanced")
    assert costly.helps("memory")
    assert not costly.helps("time")


def test_memory_is_called_by_what_was_measured() -> None:
    """Of a program whose memory stays, the figure is RSS at its end, and was called its peak."""
    arm = tried(ratio(1.0, 1.1), ratio(0.5, 1.01))
    at_end = Verdict("memory", [arm], arm, [arm], "end_rss_kib")
    assert "memory at the end 0.50" in words.verdict(at_end, width=200)
    assert "peak" not in words.verdict(at_end, width=200)


def arm(name: str, time: Ratio, memory: Ratio, remedy: Remedy) -> Tried:
    return Tried(name, time, memory, None, remedy=remedy)


UNTOLD = Ratio(value=0.5, low=0.0, high=math.inf, pairs=3, different=False)
SURE = ratio(0.5, 1.01)
SAME = ratio(1.0, 1.01)
ALONE = Remedy("jemalloc", (), "another allocator")
ASKING = Remedy("jemalloc", (("MALLOC_CONF", "thp:always"),), "asks for huge pages")


def said(verdict: Verdict) -> str:
    return " ".join(words.verdict(verdict, width=70).split())


@given(st.sampled_from(GOALS))
def test_after_too_few_rounds_it_is_not_known_and_a_budget_is_named(goal: Goal) -> None:
    """After three rounds it said 'Nothing that was tried is really better': nobody could have told."""
    tried = [arm("jemalloc", UNTOLD, UNTOLD, ALONE)]
    told = said(Verdict(goal, tried, None, [], rounds=3, enough_s=120.0))
    assert "It is not known whether anything that was tried is better" in told
    assert "3 rounds are too few" in told
    assert "--time-budget 120 would probably do" in told
    assert "is really better" not in told


def test_what_is_not_known_of_some_is_said_beside_what_is_known_of_the_rest() -> None:
    fine, few = arm("glibc:A=1", SAME, SAME, ALONE), arm("jemalloc", UNTOLD, UNTOLD, ALONE)
    told = said(Verdict("time", [fine, few], None, [], rounds=6))
    assert told.startswith("Of the rest nothing that was tried is really better for time; of jemalloc it is not known")
    best = arm("glibc:A=1", SURE, SAME, ALONE)
    assert "But of jemalloc it is not known" in said(Verdict("time", [best, few], best, [best], rounds=6))


def test_rounds_that_show_no_gain_say_what_they_may_have_missed() -> None:
    wide = arm("jemalloc", ratio(1.0, 1.5), SAME, ALONE)
    told = said(Verdict("time", [wide], None, [], rounds=6))
    assert told.startswith("Nothing that was tried is really better for time; but these rounds saw only what is large")
    assert "jemalloc may still take 0.67 times the time" in told
    narrow = arm("jemalloc", SAME, SAME, ALONE)
    assert said(Verdict("time", [narrow], None, [], rounds=6)) == "Nothing that was tried is really better for time."


def test_a_setting_is_credited_with_what_it_adds_and_no_more() -> None:
    """'jemalloc:thp:always, peak memory 0.938x: asks for huge pages', and jemalloc alone has 0.90."""
    with_it = arm("jemalloc:MALLOC_CONF=thp:always", SURE, ratio(0.9, 1.01), ASKING)
    untried = said(Verdict("time", [with_it], with_it, [with_it], rounds=6))
    assert "how much of that is the setting's is not known, since jemalloc alone was not tried" in untried
    assert "asks for huge pages" not in untried
    level = arm("jemalloc", ratio(0.501, 1.02), ratio(0.9, 1.02), ALONE)
    beside = said(Verdict("time", [with_it, level], with_it, [with_it], rounds=6))
    assert "jemalloc alone is not told apart from it (time 0.50" in beside
    assert "asks for huge pages" not in beside
    slower = arm("jemalloc", ratio(0.8, 1.01), ratio(0.9, 1.01), ALONE)
    adds = said(Verdict("time", [with_it, slower], with_it, [with_it], rounds=6))
    assert "jemalloc alone has time 0.80" in adds
    assert "the setting adds time 0.6" in adds
    assert "asks for huge pages" in adds


def test_the_best_of_glibc_is_credited_with_its_setting() -> None:
    """glibc alone is the program that all ratios are to."""
    setting = Remedy("glibc", (("MALLOC_ARENA_MAX", "1"),), "one heap")
    best = arm("glibc:MALLOC_ARENA_MAX=1", SURE, SAME, setting)
    assert said(Verdict("time", [best], best, [best], rounds=6)).endswith(": one heap.")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rounds=st.integers(1, 6), budget_s=st.floats(1, 300), wall_s=st.floats(0.01, 20))
def test_the_budget_that_is_named_has_room_for_the_rounds_that_are_planned(
    make_record: Callable[..., TrialRecord], rounds: int, budget_s: float, wall_s: float
) -> None:
    assert enough_s([], budget_s) is None
    records = [make_record("glibc", number, wall_s=wall_s) for number in range(rounds)]
    named = enough_s(records, budget_s)
    assert named is not None
    assert named >= budget_s / rounds * LEAST_ROUNDS
    assert named >= LEAST_ROUNDS * wall_s
