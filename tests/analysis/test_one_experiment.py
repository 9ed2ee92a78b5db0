"""What belongs side by side, and what is named where it does not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.analysis.one_experiment import alone, stands_apart
from freestone.analysis.sides import Side
from freestone.records.schema import (
    Allocator,
    Configuration,
    Environment,
    Experiment,
    Input,
    Machine,
    Metrics,
    Output,
    ProcessProof,
    Proof,
    Stages,
    TrialRecord,
    Workload,
)

HERE = Machine(id="a", facts={"host": "h1"})
THERE = Machine(id="b", facts={"host": "h2"})


def configuration(name: str, **changes: Any) -> Configuration:
    version, build = changes.pop("version", "1"), changes.pop("build", "ab")
    allocator = Allocator(name=name, title=name, version=version, build_id=build)
    return Configuration(name=name, allocator=allocator, **changes)


def side(
    *,
    machine: Machine = HERE,
    files: dict[str, str] | None = None,
    build: str = "11",
    said: str = "same",
    workload: dict[str, Any] | None = None,
    **changes: Any,
) -> Side:
    """A result; whatever is not told is as in every other."""
    work = Workload(name="work", command=["./work", "in.dat"]).model_copy(update=workload or {})
    head = Experiment(
        id=changes.pop("id", f"of {machine.id}"),
        created_at="2026-11-20T13:00:00+00:00",
        freestone_version="1",
        command_line=["freestone", "compare", "--", "./work", "in.dat"],
        machine=machine,
        workloads=[work],
        configurations=[configuration("glibc"), configuration("jemalloc")],
        baseline="glibc",
        rounds=2,
        seed=7,
        environment=Environment(told={"LANG": "C"}),
    ).model_copy(update=changes)
    records = [
        TrialRecord(
            experiment=head.id,
            workload=head.workloads[0].name,
            configuration=each.name,
            round=number,
            position=0,
            started_at="2026-11-20T13:00:00+00:00",
            status="ok",
            metrics=Metrics(wall_s=1.0, user_s=1.0, sys_s=0.0, peak_rss_kib=1000),
            output=Output(stdout_sha256=said),
            files={"/home/in.dat": "1f", "/home/work": "elf:22"} if files is None else files,
            proof=Proof(
                valid=True,
                processes=[ProcessProof(pid=1, parent=0, exe="/home/work", exe_build_id=build, proved=True)],
            ),
        )
        for each in head.configurations
        for number in range(head.rounds)
    ]
    return Side(head, records)


def differs(one: Side, other: Side, *, any_build: bool = False) -> str | None:
    """What keeps two results of one workload from standing side by side."""
    first, second = (alone(each, each.experiment.workloads[0]) for each in (one, other))
    return stands_apart(first, second, any_build=any_build)


def test_another_machine_another_day_other_rounds_and_builds_of_allocators_belong_together() -> None:
    newer = [configuration("glibc", version="2", build="cd"), configuration("jemalloc")]
    others = {"others": {"HOME": "ff"}, "others_sha256": "x"}
    for other in (
        side(machine=THERE),
        side(id="again", created_at="2026-12-01T00:00:00+00:00"),
        side(machine=THERE, rounds=3, seed=8, time_budget_s=30.0),
        side(machine=THERE, configurations=newer),
        side(machine=THERE, configurations=[configuration("jemalloc"), configuration("glibc")]),
        side(machine=THERE, workload={"directory": "/elsewhere"}),
        side(machine=THERE, environment=Environment(told={"LANG": "C"}, **others)),
        side(machine=THERE, environment=None),
    ):
        assert differs(side(), other) is None
        assert differs(other, side()) is None


APART: dict[str, tuple[dict[str, Any], str]] = {
    "lab": ({"freestone_version": "2"}, "another version of the lab: 2, not 1"),
    "argument": ({"workload": {"command": ["./work", "other"]}}, "another command: ./work other, not ./work in.dat"),
    "content": ({"files": {"/home/in.dat": "2f"}}, "another content of in.dat"),
    "output": ({"said": "else"}, "another output, as under glibc: the program did other work"),
    "variable": ({"workload": {"environment": {"N": "2"}}}, "another environment"),
    "input": ({"workload": {"input": Input(file="/x", bytes=1, sha256="12")}}, "an input on one side only"),
    "prepare": ({"workload": {"stages": Stages(prepare="sync")}}, "another prepare"),
    "survivors": ({"workload": {"survivors": "wait"}}, "another survivors: wait, not fail"),
    "rest": ({"workload": {"rest_s": 3}}, "another rest_s: 3, not none"),
    "failures": ({"workload": {"allow_failures": 2}}, "another allow_failures: 2, not 0"),
    "timeout": ({"timeout_s": 9.0}, "another timeout: 9.0, not none"),
    "setting": (
        {"configurations": [configuration("glibc", environment={"A": "1"}), configuration("jemalloc")]},
        "glibc: other settings: A is 1, not not set",
    ),
    "huge pages": (
        {"configurations": [configuration("glibc", huge_pages_off=True), configuration("jemalloc")]},
        "glibc: huge pages are off on one side only",
    ),
    "kept": ({"environment": Environment(kept=True, told={"LANG": "C"})}, "the lab's environment was kept on one side"),
    "told": ({"environment": Environment(told={"LANG": "de"})}, "another environment: LANG ('C' and 'de')"),
}


@pytest.mark.parametrize(("changes", "told"), APART.values(), ids=APART)
def test_what_is_not_the_same_is_named(changes: dict[str, Any], told: str) -> None:
    said = differs(side(), side(machine=THERE, **changes))
    assert said is not None
    assert said.startswith(told)
    assert "\n" not in said
    assert differs(side(machine=THERE, **changes), side()) is not None, "whichever is given first"
    assert differs(side(**changes), side(machine=THERE, **changes)) is None, "it is the same where both have it"


def test_another_build_of_the_program_may_be_allowed_on_one_machine() -> None:
    assert differs(side(), side(machine=THERE, build="12")) is None
    assert differs(side(), side(id="later", build="12")) == "another build of the program"
    assert differs(side(), side(id="later", build="12"), any_build=True) is None
    assert differs(side(), side(machine=THERE, build="12", files={"/home/in.dat": "3"}), any_build=True) is not None


def test_a_suite_has_as_many_threads_as_each_machine_has_cpus() -> None:
    def measured(machine: Machine, cpus: int, threads: int, verb: str = "bench") -> Side:
        return side(
            machine=machine.model_copy(update={"facts": {**machine.facts, "cores_allowed": cpus}}),
            command_line=["freestone", verb, "field"],
            workload={"command": ["/x/server", "--threads", str(threads)]},
            files={},
        )

    one = measured(HERE, 64, 64)
    for cpus, threads in ((2, 2), (64, 64)):
        assert differs(one, measured(THERE, cpus, threads)) is None
    assert differs(one, measured(THERE, 2, 3)) == ("another command: /x/server --threads 3, not /x/server --threads 64")
    typed = measured(HERE, 64, 64, "compare"), measured(THERE, 2, 2, "compare")
    assert differs(*typed) == "another command: /x/server --threads 2, not /x/server --threads 64"


def test_what_every_workload_sets_is_no_difference_of_the_machines() -> None:
    own = {"environment": {"LANG": "C.UTF-8"}}
    here, there = (Environment(told={"LANG": lang}) for lang in ("C", "de"))
    assert differs(side(workload=own, environment=here), side(machine=THERE, workload=own, environment=there)) is None


@given(st.sampled_from(sorted(APART)), st.sampled_from(sorted(APART)))
def test_who_is_given_first_is_of_no_matter(one: str, other: str) -> None:
    first, second = side(**APART[one][0]), side(machine=THERE, **APART[other][0])
    assert (differs(first, second) is None) == (differs(second, first) is None) == (one == other)
