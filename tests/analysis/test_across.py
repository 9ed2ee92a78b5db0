"""Machines side by side: who is best where, and what turns round."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from invented_machines import estimate, there

from freestone.analysis.across import NOBODY, across
from freestone.analysis.machines import key
from freestone.analysis.statistics import estimate as estimated
from freestone.records.schema import Machine
from freestone.reports.across import tables

NAMES = ("freestone", "jemalloc")


def test_a_ranking_that_changes_is_named_with_its_places() -> None:
    here = there("a", {"freestone": estimate(0.8), "jemalloc": estimate(0.9)}, "freestone")
    other = there("b", {"freestone": estimate(1.2), "jemalloc": estimate(0.9)}, "jemalloc")
    (found,) = across([here, other])
    (turn,) = found.turns
    assert (turn.aspect, turn.configuration, turn.less, turn.more) == ("time", "freestone", ["a"], ["b"])
    assert found.agreed("time") is None


def test_what_is_not_told_apart_turns_nothing() -> None:
    here = there("a", {"freestone": estimate(0.8)}, "freestone")
    other = there("b", {"freestone": estimate(1.2, spread=0.2)}, "freestone")
    (found,) = across([here, other])
    assert found.turns == []
    assert found.agreed("time") == "freestone"


def test_one_machine_and_other_baselines_are_not_side_by_side() -> None:
    here = there("a", {"freestone": estimate(0.8)})
    assert across([here, here]) == []
    assert across([here, there("b", {"freestone": estimate(0.8)}, baseline="musl")]) == []


def test_chance_turns_nothing_among_a_thousand_machines() -> None:
    """Nobody is better or worse anywhere: by the intervals of each machine alone, dozens would say so."""
    source = random.Random(1)
    fleet = [
        there(f"m{number}", {name: estimated([source.gauss(0, 0.02) for _ in range(10)]) for name in NAMES}, cpu="one")
        for number in range(1000)
    ]
    (found,) = across(fleet)
    alone = [each.ratios["time"]["freestone"] for each in fleet]
    assert any(each.different and each.value < 1 for each in alone)
    assert any(each.different and each.value > 1 for each in alone)
    assert found.turns == []


def test_what_really_turns_is_seen_among_a_thousand_machines() -> None:
    fleet = [
        there(f"m{number}", {"freestone": estimate(0.85 if number % 2 else 1.15)}, cpu=f"kind {number % 2}")
        for number in range(1000)
    ]
    ((turn,),) = [each.turns for each in across(fleet)]
    assert (len(turn.less), len(turn.more)) == (500, 500)


def test_machines_of_one_kind_are_counted_together_and_stay_themselves() -> None:
    fleet = [
        *(there(f"a{number}", {"freestone": estimate(0.8)}, "freestone", cpu="A") for number in range(3)),
        there("a3", {"freestone": estimate(1.0)}, None, cpu="A"),
        there("b0", {"jemalloc": estimate(0.9)}, "jemalloc", cpu="B"),
    ]
    (found,) = across(fleet)
    assert [(group.name, len(group.places)) for group in found.groups] == [("A", 4), ("B", 1)]
    assert found.groups[0].best("time") == [("freestone", 3), (NOBODY, 1)]
    assert found.groups[1].best("time") == [("jemalloc", 1)]


def test_machines_of_which_no_two_are_alike_are_no_kinds() -> None:
    (found,) = across([there("a", {}), there("b", {})])
    assert found.groups == []


def test_one_machine_twice_in_one_folder_stands_side_by_side_and_is_told() -> None:
    monday = there("monday", {"freestone": estimate(0.8)}, "freestone", cpu="A")
    friday = replace(there("friday", {"freestone": estimate(1.2)}, cpu="A"), machine="monday")
    other = there("b", {"freestone": estimate(0.8)}, "freestone", cpu="A")
    assert across([monday, friday]) == []
    (found,) = across([monday, friday], one_order=True)
    assert (found.machines, found.again, found.groups) == (1, [["monday", "friday"]], [])
    (side_by_side,) = tables([found])
    assert side_by_side.table.title == "work in 2 results of one machine"
    assert "monday and friday are one machine, measured more than once." in side_by_side.sentences
    (found,) = across([monday, other, friday], one_order=True)
    assert (found.machines, found.again) == (2, [["monday", "friday"]])
    assert found.groups == [], "a machine that stands there twice would count twice"
    assert tables([found])[0].table.title == "work in 3 results of 2 machines"


def test_another_kernel_makes_no_other_machine_of_a_host() -> None:
    host = {"host": "h"}
    assert key(Machine(id="old", facts=host)) == key(Machine(id="new", facts=host)) != key(Machine(id="old", facts={}))


def test_in_one_folder_a_program_may_lie_elsewhere() -> None:
    here, other = (there(name, {"freestone": estimate(0.8)}) for name in ("a", "b"))
    moved = replace(other, command=("/elsewhere/work",))
    assert across([here, moved]) == []
    (found,) = across([here, moved], one_order=True)
    assert [each.place for each in found.places] == ["a", "b"]


@given(
    st.lists(
        st.dictionaries(st.sampled_from(NAMES), st.tuples(st.floats(0.5, 2), st.booleans())), min_size=2, max_size=5
    )
)
def test_a_turn_has_somebody_on_either_side(told: list[dict[str, tuple[float, bool]]]) -> None:
    results = [
        there(f"m{number}", {name: estimate(value, 0.003 if real else 1.0) for name, (value, real) in each.items()})
        for number, each in enumerate(told)
    ]
    (found,) = across(results)
    assert len(found.places) == len(told)
    for turn in found.turns:
        assert turn.less
        assert turn.more
        assert not set(turn.less) & set(turn.more)
