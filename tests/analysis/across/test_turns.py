"""Where a ranking changes: what really turns is seen, and chance turns nothing."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented_machines import there, took

from freestone.analysis.across import across
from freestone.analysis.across.there import ASPECTS
from freestone.analysis.across.turns import Turn

NAMES = ("freestone", "jemalloc")


def _gauss(source: random.Random) -> float:
    return source.gauss(0, 0.02)


def _now_and_then(source: random.Random) -> float:
    """One round in ten is a third slower or faster: no Student's t."""
    return (0.0 if source.random() < 0.9 else source.choice((-0.3, 0.3))) + source.gauss(0, 0.001)


def _late(source: random.Random) -> float:
    """One round in ten is late, and by how much has a long tail."""
    return source.expovariate(1) * 0.3 if source.random() < 0.1 else source.gauss(0, 0.001)


def _drawn(
    source: random.Random, draw: Callable[[random.Random], float], rounds: int = 10, *, shared: bool = False
) -> dict[str, list[float]]:
    """Nobody is better or worse: what differs is noise, shared where a baseline's own is in every ratio."""
    common = [draw(source) if shared else 0.0 for _ in range(rounds)]
    return {name: [math.exp(draw(source) - each) for each in common] for name in (*NAMES, "mimalloc", "tcmalloc")}


def test_a_ranking_that_changes_is_named_with_its_places() -> None:
    here = there("a", {"freestone": took(0.8)}, "freestone")
    other = there("b", {"freestone": took(1.2), "jemalloc": took(1.3)})
    (found,) = across([here, other])
    assert found.turns == [Turn("time", "freestone", "glibc", ["a"], ["b"])]
    assert found.agreed("time") is None


@pytest.mark.parametrize("aspect", ASPECTS)
def test_two_that_change_places_are_seen_where_neither_crosses_the_baseline(aspect: str) -> None:
    one, other = ({"freestone": took(low), "jemalloc": took(high)} for low, high in ((0.6, 0.9), (0.9, 0.6)))
    if aspect == "time":
        fleet = [there("a", one, "freestone"), there("b", other, "jemalloc")]
    else:
        same = {name: took(1.0) for name in NAMES}
        fleet = [
            there("a", same, memory=one, best_in_memory="freestone"),
            there("b", same, memory=other, best_in_memory="jemalloc"),
        ]
    (found,) = across(fleet)
    assert found.turns == [Turn(aspect, "freestone", "jemalloc", ["a"], ["b"])]


def test_what_turns_is_asked_of_whoever_is_anywhere() -> None:
    found = across(
        [
            there("a", {"freestone": took(0.8)}),
            there("b", {"freestone": took(0.8), "jemalloc": took(0.9)}),
            there("c", {"jemalloc": took(1.1)}),
        ]
    )
    assert [turn for each in found for turn in each.turns] == [Turn("time", "jemalloc", "glibc", ["b"], ["c"])]


def test_what_the_winners_do_is_told_before_what_crosses_the_baseline() -> None:
    here = there("a", {"x": took(0.5), "y": took(0.8), "z": took(0.9)}, "x")
    other = there("b", {"x": took(1.2), "y": took(0.7), "z": took(0.95)}, "y")
    (found,) = across([here, other])
    assert [(turn.configuration, turn.other) for turn in found.turns] == [("x", "y"), ("x", "glibc"), ("x", "z")]


def test_the_more_is_asked_the_surer_a_ranking_has_to_be() -> None:
    """By the intervals of two machines and two tables it turns, and by those of two machines and fifty it does not."""

    def tables_with_a_turn(workloads: int) -> int:
        fleet = [
            there(name, {"freestone": took(value, spread=0.004)}, workload=f"work {number}")
            for name, value in (("a", 0.98), ("b", 1 / 0.98))
            for number in range(workloads)
        ]
        return sum(bool(each.turns) for each in across(fleet))

    assert tables_with_a_turn(2) == 2
    assert tables_with_a_turn(50) == 0


def test_what_is_not_told_apart_turns_nothing() -> None:
    here = there("a", {"freestone": took(0.8)}, "freestone")
    other = there("b", {"freestone": took(1.2, spread=0.2)}, "freestone")
    (found,) = across([here, other])
    assert found.turns == []
    assert found.agreed("time") == "freestone"


def test_chance_turns_nothing_among_a_thousand_machines() -> None:
    """Nobody is better or worse anywhere: by the intervals of each machine alone, dozens would say so."""
    source = random.Random(1)
    fleet = [there(f"m{number}", _drawn(source, _gauss), cpu="one") for number in range(1000)]
    (found,) = across(fleet)
    alone = [each.ratios["time"]["freestone"] for each in fleet]
    assert any(each.different and each.value < 1 for each in alone)
    assert any(each.different and each.value > 1 for each in alone)
    assert found.turns == []


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("rounds", [4, 10])
@pytest.mark.parametrize("draw", [_gauss, _now_and_then, _late])
def test_chance_turns_nothing_in_many_orders(draw: Callable[[random.Random], float], rounds: int, shared: bool) -> None:
    source = random.Random(7)
    for _ in range(50):
        fleet = [there(f"m{number}", _drawn(source, draw, rounds, shared=shared)) for number in range(20)]
        (found,) = across(fleet)
        assert found.turns == []


def test_what_really_turns_is_seen_among_a_thousand_machines() -> None:
    fleet = [
        there(f"m{number}", {"freestone": took(0.85 if number % 2 else 1.15)}, cpu=f"kind {number % 2}")
        for number in range(1000)
    ]
    ((turn,),) = [each.turns for each in across(fleet)]
    assert (len(turn.less), len(turn.more)) == (500, 500)


@given(
    st.lists(
        st.dictionaries(st.sampled_from(NAMES), st.tuples(st.floats(0.5, 2), st.booleans())), min_size=2, max_size=5
    )
)
def test_a_turn_has_somebody_on_either_side(told: list[dict[str, tuple[float, bool]]]) -> None:
    results = [
        there(f"m{number}", {name: took(value, 0.003 if real else 1.0) for name, (value, real) in each.items()})
        for number, each in enumerate(told)
    ]
    (found,) = across(results)
    assert len(found.places) == len(told)
    for turn in found.turns:
        assert turn.less
        assert turn.more
        assert not set(turn.less) & set(turn.more)
