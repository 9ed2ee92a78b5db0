"""Means over a suite: each run of the baseline counts, rounds speak of the same workloads, intervals hold at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import suite_means
from freestone.records import store
from freestone.records.schema import (
    Allocator,
    Configuration,
    Experiment,
    Machine,
    Metrics,
    Proof,
    TrialRecord,
    Workload,
)
from freestone.reports import quantities

RATIOS = st.floats(0.1, 10)


def experiment(*names: str, rounds: int = 4) -> Experiment:
    return Experiment(
        id="x",
        created_at="2026-11-27T12:00:00Z",
        freestone_version="0.1.0",
        command_line=["freestone", "bench"],
        machine=Machine(id="here", facts={}),
        workloads=[Workload(name=name, command=["true"], time_from="json") for name in ("perl-keys", "ruby-keys")],
        configurations=[
            Configuration(name=name, allocator=Allocator(name=name, title=name)) for name in ("glibc", *names)
        ],
        baseline="glibc",
        rounds=rounds,
        seed=1,
    )


def record(
    workload: str, turn: int, configuration: str, seconds: float, *, repeat: int = 0, status: str = "ok"
) -> TrialRecord:
    return TrialRecord.model_validate(
        {
            "experiment": "x",
            "workload": workload,
            "configuration": configuration,
            "round": turn,
            "position": 0,
            "repeat": repeat,
            "started_at": "2026-11-27T12:00:00Z",
            "status": status,
            "reason": None if status == "ok" else "it failed",
            "metrics": Metrics(
                wall_s=seconds, user_s=seconds, sys_s=0.0, peak_rss_kib=int(1000 * seconds), minor_faults=10
            ),
            "figures": {"seconds": seconds},
            "proof": {"valid": status == "ok"},
        }
    )


def runs(ratio: Callable[[int, str], float], second: float = 1.0, rounds: int = 4) -> list[TrialRecord]:
    """Two workloads under glibc, twice a round, and under another whose time is so many times the first run's."""
    made = []
    for turn in range(rounds):
        for workload in ("perl-keys", "ruby-keys"):
            made += [
                record(workload, turn, "glibc", 2.0),
                record(workload, turn, "glibc", 2.0 * second, repeat=1),
                record(workload, turn, "own", 2.0 * ratio(turn, workload)),
            ]
    return made


def mean_of(records: list[TrialRecord]) -> float:
    of = experiment("own")
    one, other = (
        suite_means.figures(of, [record for record in records if record.configuration == name])["time"]
        for name in ("own", "glibc")
    )
    logs = suite_means.rounds(one, other)
    return math.exp(sum(logs) / len(logs))


@given(RATIOS, RATIOS)
def test_both_runs_of_the_baseline_count(ratio: float, second: float) -> None:
    assert mean_of(runs(lambda *_: ratio, second)) == pytest.approx(ratio / math.sqrt(second))


@given(RATIOS)
def test_a_workload_that_is_not_whole_is_left_out_of_every_round(ratio: float) -> None:
    made = runs(lambda _, workload: ratio if workload == "perl-keys" else 3.0)
    lost = [each for each in made if (each.workload, each.round, each.configuration) != ("ruby-keys", 1, "own")]
    failed = [*lost, record("ruby-keys", 1, "own", 0.001, status="failed")]
    assert mean_of(lost) == mean_of(failed) == pytest.approx(ratio)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=9), st.integers(1, 9))
def test_an_interval_is_wider_the_more_are_to_hold_with_it(logs: list[float], of: int) -> None:
    found, wider = suite_means.ratio(logs, of), suite_means.ratio(logs, of + 1)
    assert wider.low <= found.low <= math.exp(sum(logs) / len(logs)) * (1 + 1e-9)
    assert wider.high >= found.high >= found.low
    assert not quantities.is_known(suite_means.ratio(logs[:3], of)), "so few rounds say nothing, here as in all tables"


def test_the_table_has_the_least_first_and_the_baseline_beside_itself() -> None:
    slow = [
        each.model_copy(update={"configuration": "slow"})
        for each in runs(lambda *_: 2.0)
        if each.configuration == "own"
    ]
    lines = suite_means.table(experiment("slow", "own"), [*runs(lambda *_: 0.5, 1.21), *slow])
    assert [line.split(" | ")[0] for line in lines[2:]] == [
        "| own",
        "| slow",
        "| glibc, its second run of a round to its first",
    ]
    assert "0.455 [0.455, 0.455]" in lines[2]
    assert "1.210 [1.210, 1.210]" in lines[4]


def test_what_is_not_proved_does_not_count_and_the_row_says_on_how_many_it_is_seen() -> None:
    made = runs(lambda _, workload: 0.5 if workload == "perl-keys" else 0.01)
    made[-1] = made[-1].model_copy(update={"proof": Proof(valid=False)})
    [*_, own, itself] = suite_means.table(experiment("own"), made)
    assert own.startswith("| own | 0.500 [0.500, 0.500] (1 of 2) |")
    assert "(" not in itself.removeprefix("|")


def test_damaged_records_are_told_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store.write_experiment(tmp_path, experiment("own"))
    lines = [each.model_dump_json() for each in runs(lambda *_: 0.5)]
    (tmp_path / store.TRIALS_FILE).write_text("\n".join([*lines, '{"half']))
    assert suite_means.main([str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "| own | 0.500 [0.500, 0.500] |" in said.out
    assert "1 damaged, left out" in said.err


def test_wrong_use_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, status in (([], 2), (["a", "b", "c"], 2), ([str(tmp_path), "nosuch"], 2), ([str(tmp_path / "none")], 1)):
        assert suite_means.main(words) == status
        said = capsys.readouterr()
        assert said.out == ""
        assert len(said.err.strip().splitlines()) == 1
