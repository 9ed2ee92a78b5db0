"""Which remedies get rounds, after each has run once."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from freestone.analysis.pareto import Goal
from freestone.doctor.remedies import CANDIDATES, Remedy, remedy
from freestone.doctor.screening import Once, chosen, promise

EVERY = list({replace(each, why=""): each for row in CANDIDATES.values() for each in row}.values())
UNTOUCHED = Once(2.0, 100_000)

goals = st.sampled_from(["time", "memory", "balanced"])
runs = st.builds(Once, st.floats(0.1, 20), st.none() | st.integers(1_000, 1_000_000))
once_each = st.lists(st.sampled_from(EVERY), unique=True).flatmap(
    lambda order: st.lists(runs, min_size=len(order), max_size=len(order)).map(
        lambda took: dict(zip(order, took, strict=True))
    )
)


def alone(each: Remedy) -> Remedy:
    return replace(each, settings=(), kernel=(), huge_pages_off=False, why="")


@given(once_each, goals, st.integers(1, 12))
def test_so_many_each_once_and_no_setting_without_its_allocator_alone(
    once: dict[Remedy, Once], goal: Goal, most: int
) -> None:
    found = chosen(once, UNTOUCHED, goal, most)
    assert len(found) == len(set(found)) == min(most, len(once))
    bare = [replace(each, why="") for each in once]
    for place, each in enumerate(found):
        if each.allocator != "glibc" and alone(each) != replace(each, why="") and alone(each) in bare:
            assert alone(each) in [replace(one, why="") for one in found[:place]]


@given(once_each, goals)
def test_the_most_promising_is_among_them_or_its_allocator_alone(once: dict[Remedy, Once], goal: Goal) -> None:
    if once:
        best = min(once, key=lambda each: promise(once[each], UNTOUCHED, goal))
        (found,) = chosen(once, UNTOUCHED, goal, 1)
        assert found.allocator == best.allocator


def test_what_keeps_a_heap_small_is_found_though_it_is_planned_last() -> None:
    """With room for one the first of the plan was tried, which does nothing here, and "nothing is better" was said."""
    plan = {
        remedy("glibc", "", {"MALLOC_TRIM_THRESHOLD_": "65536"}): Once(2.0, 100_000),
        remedy("jemalloc", ""): Once(2.1, 104_000),
        remedy("freestone", ""): Once(2.05, 3_000),
    }
    assert [each.allocator for each in chosen(plan, UNTOUCHED, "memory", 1)] == ["freestone"]


def test_what_is_about_the_same_stays_in_the_order_of_the_plan() -> None:
    plan = {remedy(name, ""): Once(1.0 + 0.001 * at, 100_000) for at, name in enumerate("cab")}
    assert [each.allocator for each in chosen(plan, UNTOUCHED, "time", 3)] == ["c", "a", "b"]


def test_a_balanced_goal_passes_over_what_costs_memory() -> None:
    plan = {remedy("fast", ""): Once(0.5, 150_000), remedy("even", ""): Once(1.8, 100_000)}
    assert [each.allocator for each in chosen(plan, UNTOUCHED, "balanced", 1)] == ["even"]
    assert [each.allocator for each in chosen(plan, UNTOUCHED, "time", 1)] == ["fast"]
