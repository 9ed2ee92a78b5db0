"""Who measured the same work, and what is told of who did not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from invented_records import MakeExperiment, MakeRecord

from freestone.analysis.across.beside import Beside, Work
from freestone.analysis.one_experiment import alone, stands_apart
from freestone.analysis.sides import Side
from freestone.records.schema import (
    Allocator,
    Configuration,
    Environment,
    Experiment,
    Machine,
    ProcessProof,
    Proof,
    Service,
    TrialRecord,
    Workload,
)


class Sides:
    """Results of one program that reads a file, on machines of their own."""

    def __init__(self, make_experiment: MakeExperiment, make_record: MakeRecord) -> None:
        self._experiment = make_experiment
        self._record = make_record

    def __call__(
        self,
        host: str,
        *,
        content: str = "1f",
        build: str = "11",
        said: str = "same",
        failed: bool = False,
        names: tuple[str, ...] = ("glibc", "freestone"),
        workload: dict[str, Any] | None = None,
        **changes: Any,
    ) -> Side:
        work = Workload(name="work", command=["./work", "in.dat"]).model_copy(update=workload or {})
        facts = {"machine": Machine(id=host, facts={"host": host}), "workloads": [work], "rounds": 2}
        experiment: Experiment = self._experiment(names, **{**facts, **changes})
        process = ProcessProof(pid=1, parent=0, exe="/home/work", exe_build_id=build, proved=True)
        more = {
            "files": {"/home/in.dat": content, "/home/work": f"elf:{build}"},
            "proof": Proof(valid=True, processes=[process]),
        }
        records: list[TrialRecord] = [
            self._record(name, number, said=said).model_copy(update=more) for name in names for number in range(2)
        ]
        if failed:
            records = [each.model_copy(update={"status": "failed", "metrics": None}) for each in records]
        return Side(experiment, records)


@pytest.fixture
def sides(make_experiment: MakeExperiment, make_record: MakeRecord) -> Sides:
    return Sides(make_experiment, make_record)


def sort(beside: Beside, *results: Side) -> list[Work]:
    """What each has measured of the workload, in the order given."""
    taken = [beside.take(each)["work"] for each in results]
    works = beside.works()
    return [works[each] for each in taken]


def test_what_machines_have_of_their_own_keeps_nobody_apart(sides: Sides) -> None:
    newer = Allocator(name="glibc", title="glibc", version="9", build_id="cd")
    works = sort(
        Beside(one_order=True),
        sides("a"),
        sides("b"),
        sides("c", build="12"),
        sides("d", names=("glibc",)),
        sides("e", rounds=9, seed=3, configurations=[Configuration(name="glibc", allocator=newer)]),
        sides("f", workload={"directory": "/elsewhere", "command": ["./work", "in.dat"]}),
    )
    assert len(set(works)) == 1


def test_the_log_of_a_server_is_each_machine_s_own(sides: Sides) -> None:
    served = {"service": Service(ready="true", load="true")}
    one, other = sort(Beside(one_order=True), *(sides(host, said=host, workload=served) for host in ("a", "b")))
    assert one == other


APART: dict[str, tuple[dict[str, Any], str]] = {
    "input": ({"content": "2f"}, "another content of in.dat"),
    "output": ({"said": "else"}, "another output, as under glibc: the program did other work"),
    "variable": ({"workload": {"environment": {"FOO": "there"}}}, "another environment"),
    "lab": ({"freestone_version": "9"}, "another version of the lab: 9, not 0"),
    "locale": ({"environment": Environment(told={"LANG": "de"})}, "another environment: LANG ('C' and 'de')"),
    "argument": ({"workload": {"command": ["./work", "x"]}}, "another command: ./work x, not ./work in.dat"),
    "setting": (
        {
            "configurations": [
                Configuration(name="glibc", allocator=Allocator(name="glibc", title=""), environment={"A": "1"})
            ]
        },
        "glibc: other settings: A is 1, not not set",
    ),
}


@pytest.mark.parametrize(("changes", "told"), APART.values(), ids=APART)
def test_what_was_something_else_stands_apart_and_is_named(sides: Sides, changes: dict[str, Any], told: str) -> None:
    beside = Beside(one_order=True)
    base: dict[str, Any] = {"environment": Environment(told={"LANG": "C"})}
    changed = {**base, **changes}
    first, other, third, fourth = sort(
        beside, sides("a", **base), sides("b", **changed), sides("c", **changed), sides("d", **base)
    )
    assert (first, other) == (fourth, third)
    assert first != other
    assert beside.why(first, other) == told


def test_a_suite_has_as_many_threads_as_each_machine_has_cpus(sides: Sides) -> None:
    def measured(host: str, cpus: int, threads: int, verb: str = "bench") -> Side:
        return sides(
            host,
            machine=Machine(id=host, facts={"host": host, "cores_allowed": cpus}),
            workload={"command": ["./work", "--threads", str(threads)]},
            command_line=["freestone", verb, "x"],
        )

    first, same, other = sort(Beside(one_order=True), measured("a", 2, 8), measured("b", 16, 64), measured("d", 2, 9))
    assert same == first
    assert other != first
    first, typed = sort(Beside(one_order=True), measured("a", 2, 8), measured("e", 16, 64, "compare"))
    assert typed != first, "where somebody typed the number it is that number"


def test_another_build_on_the_same_machine_is_another_program(sides: Sides) -> None:
    beside = Beside(one_order=True)
    first, other = sort(beside, *(sides("a", build=build) for build in ("11", "12")))
    assert beside.why(first, other) == "another build of the program"


def test_a_machine_with_two_builds_keeps_no_other_machine_apart(sides: Sides) -> None:
    works = sort(Beside(one_order=True), *(sides(host, build=build) for host, build in ("a1", "a2", "b3", "c4")))
    assert len(set(works)) == 2
    assert works[0] != works[1]
    assert works[2] == works[3]


def test_where_everybody_measured_something_else_everybody_is_told(sides: Sides) -> None:
    beside = Beside(one_order=True)
    works = sort(beside, *(sides(f"m{number}", content=f"{number:02}") for number in range(50)))
    assert len(set(works)) == 50
    assert {beside.why(works[0], other) for other in works[1:]} == {"another content of in.dat"}


def test_results_of_no_order_are_of_one_command_first(sides: Sides) -> None:
    elsewhere = {"command": ["./work", "other.dat"]}
    one, other = sort(Beside(one_order=False), sides("a"), sides("b", workload=elsewhere))
    assert (one.number, other.number) == (0, 0)
    assert one != other


def test_one_that_failed_vouches_for_nobody(sides: Sides) -> None:
    beside = Beside(one_order=True)
    failed, one, other = sort(beside, sides("a", failed=True), sides("b", content="1f"), sides("c", content="2f"))
    assert one != other
    assert failed in (one, other)
    assert beside.why(one, other) == "another content of in.dat"


def test_one_that_failed_stands_beside_the_most(sides: Sides) -> None:
    failed, *works = sort(
        Beside(one_order=True),
        sides("a", failed=True),
        *(sides(host, content=content) for host, content in (("b", "2f"), ("c", "1f"), ("d", "1f"), ("e", "3f"))),
    )
    assert failed == works[1] == works[2]


def test_those_that_all_failed_stand_side_by_side(sides: Sides) -> None:
    one, other = sort(Beside(one_order=True), sides("a", failed=True), sides("b", failed=True))
    assert one == other


MADE = st.fixed_dictionaries(
    {
        "content": st.sampled_from(["1f", "2f"]),
        "build": st.sampled_from(["11", "12"]),
        "said": st.sampled_from(["same", "else"]),
        "failed": st.booleans(),
        "names": st.sampled_from([("glibc", "freestone"), ("glibc",), ("freestone",)]),
        "machine": st.sampled_from([Machine(id=name, facts={"host": name}) for name in "xyz"]),
    }
)


@given(st.lists(MADE, min_size=2, max_size=8).flatmap(lambda made: st.tuples(st.just(made), st.permutations(made))))
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_order_of_the_places_decides_nothing(
    sides: Sides, orders: tuple[list[dict[str, Any]], list[dict[str, Any]]]
) -> None:
    tables = []
    for order in orders:
        results = [sides("host", **made) for made in order]
        by_work: dict[Work, list[int]] = {}
        for number, work in enumerate(sort(Beside(one_order=True), *results)):
            by_work.setdefault(work, []).append(number)
        for together in by_work.values():
            mine = [alone(results[number], results[number].experiment.workloads[0]) for number in together]
            assert all(stands_apart(one, other) is None for one in mine for other in mine)
        tables.append(sorted(sorted(map(repr, (order[number] for number in each))) for each in by_work.values()))
    assert tables[0] == tables[1]
