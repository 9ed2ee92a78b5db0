"""Which results stand side by side, and what a row of one says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented_results import make_results

from freestone.analysis import summarise
from freestone.analysis.across import Result, across
from freestone.analysis.sides import Side
from freestone.records.schema import Environment, Machine, Summary, TrialRecord

MADE = make_results()
SUMMARY = summarise(MADE.experiment, MADE.records)
ENVIRONMENT = Environment(told={"LANG": "C"})


def result(
    name: str,
    *,
    workload: dict[str, Any] | None = None,
    trials: dict[str, Any] | None = None,
    build: str = "11",
    **changes: Any,
) -> Result:
    """A result on a machine of its own; whatever is not said is as in every other."""
    work = MADE.experiment.workloads[0].model_copy(update=workload or {})
    head = {"machine": Machine(id=name, facts={"host": name}), "environment": ENVIRONMENT, "workloads": [work]}
    experiment = MADE.experiment.model_copy(update={**head, **changes})
    records: list[TrialRecord] = []
    for record in MADE.records:
        first, *more = record.proof.processes
        proof = record.proof.model_copy(update={"processes": [first.model_copy(update={"exe_build_id": build}), *more]})
        files = {"files": {"/home/in.dat": "1f", "/home/work": "elf:22"}, "proof": proof}
        records.append(record.model_copy(update={**files, **(trials or {})}))
    return Result(name, Side(experiment, records), SUMMARY)


def left_out(*results: Result) -> dict[str, str]:
    (table,) = across(results)
    return dict(table.left_out)


def test_other_machines_days_and_builds_stand_side_by_side() -> None:
    first, second, third, *_ = MADE.experiment.configurations
    other = second.allocator.model_copy(update={"version": "another", "build_id": "another"})
    newer = [first, second.model_copy(update={"allocator": other}), third]
    others = [
        result("b", id="again", created_at="2026-12-01T00:00:00+00:00", rounds=3, seed=8),
        result("c", configurations=newer, workload={"directory": "/elsewhere"}),
        result("d", environment=Environment(told={"LANG": "C"}, others={"HOME": "ff"}, others_sha256="x")),
        result("e", build="22"),
    ]
    (table,) = across([result("a"), *others])
    assert [row.name for row in table.rows] == ["a", "b", "c", "d", "e"]
    assert table.left_out == {}
    assert table.rows[2].versions["freestone"] == "another"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"freestone_version": "2"}, "another version of the lab: 2, not 0.1.0"),
        ({"baseline": "freestone"}, "another baseline: freestone, not glibc"),
        ({"workload": {"command": ["python3", "other.py"]}}, "another command"),
        ({"workload": {"environment": {"N": "2"}}}, "another environment"),
        ({"workload": {"survivors": "wait"}}, "another survivors: wait, not fail"),
        ({"workload": {"rest_s": 3}}, "another rest_s: 3, not none"),
        ({"trials": {"files": {"/home/in.dat": "2f"}}}, "another content of in.dat"),
        ({"timeout_s": 9.0}, "another timeout: 9.0, not none"),
        ({"environment": Environment(told={"LANG": "de"})}, "another environment: LANG ('C' and 'de')"),
        ({"build": "22", "machine": Machine(id="a", facts={"host": "a"})}, "another build of the program"),
    ],
)
def test_other_work_is_left_out_with_its_reason(changes: dict[str, Any], told: str) -> None:
    assert left_out(result("a"), result("b", **changes), result("c"))["b"].startswith(told)


def test_other_settings_under_one_name_are_left_out() -> None:
    first, second, *_ = MADE.experiment.configurations
    harder = [first, second.model_copy(update={"environment": {"FREESTONE_OPTIONS": "harden=1"}})]
    assert left_out(result("a"), result("b", configurations=harder)) == {"b": "other settings of freestone"}


@pytest.mark.parametrize("failing", ["a", "c"])
def test_a_result_whose_runs_failed_decides_for_nobody(failing: str) -> None:
    results = [result(name, trials={"files": {"/home/in.dat": name}}) for name in ("a", "b", "c")]
    gone = {"status": "failed", "reason": "exit status 1", "metrics": None}
    results = [result(failing, trials=gone) if each.name == failing else each for each in results]
    assert len(left_out(*results)) == 1
    assert failing not in left_out(*results)


@given(st.sampled_from(["bench", "compare"]), st.integers(1, 64), st.integers(1, 64), st.sampled_from([1, 4]))
def test_a_thread_for_each_cpu_is_the_same_work_of_a_suite(verb: str, one: int, two: int, times: int) -> None:
    results = [
        result(
            name,
            machine=Machine(id=name, facts={"host": name, "cores_allowed": cpus}),
            command_line=["freestone", verb],
            workload={"command": ["solve", str(times * cpus)]},
        )
        for name, cpus in (("a", one), ("b", two))
    ]
    assert (left_out(*results) == {}) == (verb == "bench" or one == two)


def test_a_row_says_what_its_own_summary_says() -> None:
    (table,) = across([result("a"), result("b")])
    best = SUMMARY.best["json-sqlite"]
    for row in table.rows:
        assert {aspect: name for aspect, (name, _) in row.best.items()} == {name: best[name] for name in row.best}
        assert row.known == {"time", "peak memory"}
        assert row.without == {"jemalloc": "invalid", "tbb": "failed"}
    nothing = Summary.model_validate({**json.loads(SUMMARY.model_dump_json()), "cells": [], "best": {}})
    (table,) = across([result("a"), Result("b", result("b").side, nothing)])
    assert (table.rows[1].best, table.rows[1].known) == ({}, frozenset())
    assert across([result("a")]) == []
