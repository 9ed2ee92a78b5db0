"""Who measured the same work, and what is told of who did not."""

from __future__ import annotations

from typing import Any

import pytest
from invented_records import MakeExperiment, MakeRecord

from freestone.analysis.across.beside import Beside
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
        return Side(experiment, records)


@pytest.fixture
def sides(make_experiment: MakeExperiment, make_record: MakeRecord) -> Sides:
    return Sides(make_experiment, make_record)


def test_what_machines_have_of_their_own_keeps_nobody_apart(sides: Sides) -> None:
    beside = Beside(one_order=True)
    newer = Allocator(name="glibc", title="glibc", version="9", build_id="cd")
    (first,) = beside.sort(sides("a")).values()
    for other in (
        sides("b"),
        sides("b", build="12"),
        sides("b", names=("glibc",)),
        sides("b", rounds=9, seed=3, configurations=[Configuration(name="glibc", allocator=newer)]),
        sides("b", workload={"directory": "/elsewhere", "command": ["./work", "in.dat"]}),
    ):
        assert beside.sort(other)["work"] == first


def test_the_log_of_a_server_is_each_machine_s_own(sides: Sides) -> None:
    beside = Beside(one_order=True)
    served = {"service": Service(ready="true", load="true")}
    one, other = (beside.sort(sides(host, said=host, workload=served))["work"] for host in ("a", "b"))
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
    (first,) = beside.sort(sides("a", **base)).values()
    (other,) = beside.sort(sides("b", **{**base, **changes})).values()
    assert first != other
    assert beside.why(first, other) == told
    assert beside.sort(sides("c", **{**base, **changes}))["work"] == other
    assert beside.sort(sides("d", **base))["work"] == first


def test_a_suite_has_as_many_threads_as_each_machine_has_cpus(sides: Sides) -> None:
    beside = Beside(one_order=True)

    def measured(host: str, cpus: int, threads: int, verb: str = "bench") -> Any:
        return beside.sort(
            sides(
                host,
                machine=Machine(id=host, facts={"host": host, "cores_allowed": cpus}),
                workload={"command": ["./work", "--threads", str(threads)]},
                command_line=["freestone", verb, "x"],
            )
        )["work"]

    first = measured("a", 2, 8)
    assert measured("b", 16, 64) == first
    assert measured("d", 2, 9) != first
    assert measured("e", 16, 64, "compare") != first, "where somebody typed the number it is that number"


def test_another_build_on_the_same_machine_is_another_program(sides: Sides) -> None:
    beside = Beside(one_order=True)
    first, other = (beside.sort(sides("a", build=build))["work"] for build in ("11", "12"))
    assert beside.why(first, other) == "another build of the program"


def test_where_everybody_measured_something_else_everybody_is_told(sides: Sides) -> None:
    beside = Beside(one_order=True)
    works = [beside.sort(sides(f"m{number}", content=f"{number:02}"))["work"] for number in range(30)]
    assert len(set(works)) == 30
    assert {beside.why(works[0], other) for other in works[1:]} == {"another content of in.dat"}


def test_results_of_no_order_are_of_one_command_first(sides: Sides) -> None:
    beside = Beside(one_order=False)
    elsewhere = {"command": ["./work", "other.dat"]}
    one, other = beside.sort(sides("a"))["work"], beside.sort(sides("b", workload=elsewhere))["work"]
    assert (one.number, other.number) == (0, 0)
    assert one != other
