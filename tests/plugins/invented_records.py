"""Experiments and records without machines: every cost is chosen by the test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from freestone.analysis.rounds import Arm, Slot
from freestone.records.schema import (
    Allocator,
    Configuration,
    Experiment,
    Machine,
    Metrics,
    Output,
    Proof,
    Status,
    TrialRecord,
    Workload,
)
from freestone.trials import StageFailure

MakeExperiment = Callable[..., Experiment]
MakeRecord = Callable[..., TrialRecord]


@pytest.fixture
def make_experiment() -> MakeExperiment:
    """``make_experiment(names, rounds=, ...)``; the first name is the baseline."""

    def make(names: tuple[str, ...] = ("glibc", "freestone", "jemalloc"), **changes: object) -> Experiment:
        configurations = [
            Configuration(name=name, allocator=Allocator(name=name, title=name, file=f"/lib/{name}.so", build_id="ab"))
            for name in names
        ]
        head = Experiment(
            id="one",
            created_at="2026-11-20T13:00:00+00:00",
            freestone_version="0",
            command_line=["freestone"],
            machine=Machine(id="here"),
            workloads=[Workload(name="work", command=["true"])],
            configurations=configurations,
            baseline=names[0],
            rounds=5,
            seed=7,
        )
        return head.model_copy(update=changes)

    return make


@pytest.fixture
def make_record() -> MakeRecord:
    """``make_record(configuration, round, wall_s=, status=, ...)``"""

    def make(
        configuration: str,
        number: int,
        *,
        wall_s: float = 1.0,
        peak_rss_kib: int = 1000,
        minor_faults: int = 100,
        status: Status = "ok",
        reason: str | None = None,
        repeat: int = 0,
        position: int = 0,
        workload: str = "work",
        said: str = "same",
        experiment: str = "one",
        metrics: Metrics | None = None,
        figures: dict[str, float] | None = None,
    ) -> TrialRecord:
        cost = metrics or Metrics(
            wall_s=wall_s, user_s=wall_s, sys_s=0.0, peak_rss_kib=peak_rss_kib, minor_faults=minor_faults
        )
        return TrialRecord(
            experiment=experiment,
            workload=workload,
            configuration=configuration,
            round=number,
            position=position,
            repeat=repeat,
            started_at="2026-11-20T13:00:00+00:00",
            status=status,
            reason=reason if reason or status == "ok" else f"it {status}",
            metrics=cost,
            output=Output(stdout_sha256=said),
            figures=figures,
            proof=Proof(valid=status != "invalid"),
        )

    return make


@dataclass
class FakeTrials:
    """Takes no time. ``cost`` says what each trial costs, ``before`` is called before each."""

    record: MakeRecord
    cost: Callable[[Slot], dict[str, object]] = lambda slot: {}
    before: Callable[[Slot], None] = lambda slot: None
    taken: list[Slot] = field(default_factory=list)
    rehearsed: list[Arm] = field(default_factory=list)
    around: list[str] = field(default_factory=list)
    """What was done around the trials, and how many had been taken by then: ``setup work 0``."""
    failing: dict[str, StageFailure] = field(default_factory=dict)
    """Stage and workload, as in ``setup work`` -> why it fails."""
    now: float = 0.0

    def rehearsals(self, arms: list[Arm]) -> list[Arm]:
        return arms

    def rehearse(self, workload: Workload, configuration: Configuration) -> None:
        self.rehearsed.append((workload.name, configuration.name))

    def warm_up(self, workload: Workload, configuration: Configuration) -> None:
        self.around.append(f"warm-up {workload.name} {configuration.name} {len(self.taken)}")

    def set_up(self, workload: Workload) -> StageFailure | None:
        return self._stage("setup", workload)

    def clean_up(self, workload: Workload) -> StageFailure | None:
        return self._stage("cleanup", workload)

    def _stage(self, title: str, workload: Workload) -> StageFailure | None:
        self.around.append(f"{title} {workload.name} {len(self.taken)}")
        return self.failing.get(f"{title} {workload.name}")

    def trial(self, workload: Workload, configuration: Configuration, slot: Slot) -> TrialRecord:
        self.before(slot)
        self.taken.append(slot)
        record = self.record(
            configuration.name,
            slot.round,
            repeat=slot.repeat,
            position=slot.position,
            workload=workload.name,
            **self.cost(slot),
        )
        assert record.metrics is not None
        self.now += record.metrics.wall_s
        return record

    def clock(self) -> float:
        return self.now


@pytest.fixture
def fake_trials(make_record: MakeRecord) -> FakeTrials:
    return FakeTrials(make_record)
