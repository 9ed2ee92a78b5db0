"""Machines side by side: who is best where, and what turns round."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from invented_machines import there, took
from invented_records import MakeExperiment, MakeRecord

from freestone.analysis import summarise
from freestone.analysis.across import Across, LeftOut, across, one_machine
from freestone.analysis.across.beside import Work
from freestone.analysis.across.there import There
from freestone.analysis.across.votes import Says
from freestone.analysis.machines import key
from freestone.records.schema import Machine, Workload
from freestone.reports.across import tables


def test_other_baselines_are_not_side_by_side() -> None:
    here = there("a", {"freestone": took(0.8)})
    assert across([here, there("b", {"freestone": took(0.8)}, baseline="musl")]) == []


def test_machines_of_one_kind_are_counted_together_and_stay_themselves() -> None:
    fleet = [
        *(there(f"a{number}", {"freestone": took(0.8)}, "freestone", cpu="A") for number in range(3)),
        there("a3", {"freestone": took(1.0)}, None, cpu="A"),
        there("b0", {"jemalloc": took(0.9)}, "jemalloc", cpu="B"),
    ]
    (found,) = across(fleet)
    assert [(group.name, len(group.places)) for group in found.groups] == [("A", 4), ("B", 1)]
    said = [[(vote.says, vote.machines) for vote in group.votes("time")] for group in found.groups]
    assert said == [[(Says("best", "freestone"), 3), (Says("nobody"), 1)], [(Says("best", "jemalloc"), 1)]]


def test_machines_of_which_no_two_are_alike_are_no_kinds() -> None:
    (found,) = across([there("a", {}), there("b", {})])
    assert found.groups == []


def test_one_machine_twice_stands_side_by_side_and_is_told() -> None:
    monday = there("monday", {"freestone": took(0.8)}, "freestone", cpu="A")
    friday = replace(there("friday", {"freestone": took(1.2)}, cpu="A"), machine="monday")
    other = there("b", {"freestone": took(0.8)}, "freestone", cpu="A")
    (found,) = across([monday, friday])
    assert (found.machines, found.again, found.groups) == (1, [["monday", "friday"]], [])
    (side_by_side,) = tables([found])
    assert side_by_side.table.title == "work in 2 results of one machine"
    assert "monday and friday are one machine, measured more than once." in side_by_side.sentences
    (found,) = across([monday, other, friday], one_order=True)
    assert (found.machines, found.again) == (2, [["monday", "friday"]])
    (group,) = found.groups
    assert group.machines == 2, "a machine that stands there twice counts once"
    assert [(vote.says.sort, vote.machines) for vote in group.votes("time")] == [("best", 1), ("unlike", 1)]
    (side_by_side,) = tables([found])
    assert side_by_side.table.title == "work in 3 results of 2 machines"
    assert [piece.text for piece in side_by_side.table.rows[0]][1:3] == [
        "2",
        "freestone on 1 ×0.80; not the same each time on 1",
    ]


def test_another_kernel_makes_no_other_machine_of_a_host() -> None:
    host = {"host": "h"}
    assert key(Machine(id="old", facts=host)) == key(Machine(id="new", facts=host)) != key(Machine(id="old", facts={}))


def test_in_one_folder_a_program_may_lie_elsewhere() -> None:
    here, other = (there(name, {"freestone": took(0.8)}) for name in ("a", "b"))
    moved = replace(other, command=("/elsewhere/work",))
    assert across([here, moved]) == []
    (found,) = across([here, moved], one_order=True)
    assert [each.place for each in found.places] == ["a", "b"]


SUITE = ("w1", "w2", "w3")
FACTORS = {"w1": 0.5, "w2": 1.0, "w3": 2.0}
"""What freestone takes beside glibc of each workload: the very same on every machine."""


def _suite(make_experiment: MakeExperiment, make_record: MakeRecord, place: str, failing: set[str]) -> list[There]:
    workloads = [Workload(name=name, command=[name]) for name in SUITE]
    experiment = make_experiment(("glibc", "freestone"), workloads=workloads, rounds=8, machine=Machine(id=place))
    records = [
        make_record(
            configuration,
            number,
            workload=name,
            repeat=repeat,
            wall_s=(FACTORS[name] if configuration == "freestone" else 1.0) * (1 + 0.01 * ((number * 7 + repeat) % 5)),
            status="failed" if name in failing and number == 0 else "ok",
        )
        for name in SUITE
        for configuration in ("glibc", "freestone")
        for number in range(8)
        for repeat in range(2 if configuration == "glibc" else 1)
    ]
    return one_machine.measured(place, experiment, records, summarise(experiment, records))


def _whole(found: list[Across]) -> Across:
    (whole,) = [each for each in found if each.whole]
    return whole


def test_all_workloads_together_stand_beside_the_same_ones_only(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    found = [
        *_suite(make_experiment, make_record, "A", {"w3"}),
        *_suite(make_experiment, make_record, "B", {"w1"}),
    ]
    assert [each.turns for each in across(found, one_order=True) if each.turns] == [], "the machines say the same"
    whole = _whole(across(found, one_order=True))
    assert ([each.place for each in whole.places], whole.workload) == (["A"], "2 of 3 workloads together")
    assert whole.left_out == [LeftOut(["B"], "other workloads, with w3, without w1")]
    (shown,) = [each for each in tables([whole]) if "together" in each.table.title]
    assert "Left out: B: other workloads, with w3, without w1." in shown.sentences
    assert "Without w3: no result of glibc to hold others against." in shown.sentences
    assert not any("everywhere" in each or "ranking" in each for each in shown.sentences), "of one place"


def test_who_lacks_a_workload_is_left_out_of_the_whole_of_the_others(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    found = [
        each
        for place, failing in (("A", set()), ("B", {"w1"}), ("C", set()))
        for each in _suite(make_experiment, make_record, place, failing)
    ]
    whole = _whole(across(found, one_order=True))
    assert (whole.workload, whole.turns) == ("all 3 workloads together", [])
    assert [each.place for each in whole.places] == ["A", "C"]
    assert whole.left_out == [LeftOut(["B"], "other workloads, without w1")]
    assert len({round(each.ratios["time"]["freestone"].value, 9) for each in whole.places}) == 1


@given(st.lists(st.sets(st.sampled_from(SUITE), min_size=2), min_size=2, max_size=6))
def test_whatever_stands_side_by_side_is_of_the_same_workloads(sets: list[set[str]]) -> None:
    found = [
        replace(
            there(f"m{number}", {"freestone": took(0.8)}, workload=f"{len(names)} together"),
            whole=True,
            command=tuple(sorted(names)),
            works=tuple(Work(name, (), 0) for name in sorted(names)),
        )
        for number, names in enumerate(sets)
    ]
    tables_of = across(found, one_order=True)
    for each in tables_of:
        assert len({one.command for one in each.places}) == 1
        told = [one.place for one in each.places] + [name for left in each.left_out for name in left.places]
        assert sorted(told) == sorted(one.place for one in found), "nobody is lost without a word"
    assert tables_of


def test_who_measured_something_else_stands_apart_and_is_told() -> None:
    same, other = Work("work", (), 0), Work("work", (), 1)
    found = [
        replace(there("a", {"freestone": took(0.8)}), works=(same,)),
        replace(there("b", {"freestone": took(1.2)}), works=(other,)),
        replace(there("c", {"freestone": took(0.8)}), works=(same,)),
    ]
    (table,) = across(found, one_order=True, why=lambda one, two: f"{one.number} and {two.number}")
    assert ([each.place for each in table.places], table.turns) == (["a", "c"], [])
    assert table.left_out == [LeftOut(["b"], "0 and 1")]


def test_other_builds_of_the_program_and_of_allocators_are_told_in_the_first_table() -> None:
    found = [
        replace(there(name, {"freestone": took(0.8)}), build=build, versions={"glibc": version})
        for name, build, version in (("a", "11", "2.36"), ("b", "12", "2.31"), ("c", "11", "2.36"))
    ]
    again = [replace(each, workload="other", build=None, command=("other",)) for each in found]
    first, second = tables(across([*found, *again], one_order=True))
    assert "The program is another build on b than on a and c." in first.sentences
    assert "glibc is 2.36 on a and c, 2.31 on b." in first.sentences
    assert not any("build" in each or "2.31" in each for each in second.sentences)
