"""Workloads that free in orders, and records in which every cost is chosen by the test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from freestone.analysis import summarise
from freestone.records.schema import (
    Allocator,
    Configuration,
    Experiment,
    Machine,
    Metrics,
    Proof,
    Summary,
    TrialRecord,
    Workload,
)

OPERATIONS = 1000
ORDERS = ("lifo", "fifo", "random", "interleaved", "mixed", "half-lived")


def workload(name: str, *words: str, program: str = "/somewhere/patterns", **settings: Any) -> Workload:
    return Workload.model_validate({"name": name, "command": [program, *words], "reads": "json"} | settings)


def ordered(order: str, size: int = 16, live: int = 100, *more: str, **settings: Any) -> Workload:
    words = ("--order", order, "--size", str(size), "--live", str(live), *more)
    return workload(f"{order}-{size}-{live}{''.join(more)}", *words, **settings)


Measured = tuple[Experiment, Summary, list[TrialRecord]]


def measured(
    cells: Mapping[tuple[str, str], Sequence[tuple[float, float | None]]], workloads: Sequence[Workload]
) -> Measured:
    """Nanoseconds of one operation and of the floor, round by round, of each workload and configuration."""
    names = list(dict.fromkeys(name for _, name in cells))
    rounds = max(len(each) for each in cells.values())
    experiment = Experiment(
        id="made-up",
        created_at="2026-11-22T00:00:00Z",
        freestone_version="0",
        command_line=[],
        machine=Machine(id="m"),
        workloads=list(workloads),
        configurations=[Configuration(name=name, allocator=Allocator(name=name, title=name)) for name in names],
        baseline=names[0],
        rounds=rounds,
        seed=1,
    )
    records = [
        TrialRecord(
            experiment=experiment.id,
            workload=name,
            configuration=configuration,
            round=number,
            position=place,
            started_at="2026-11-22T00:00:00Z",
            status="ok",
            metrics=Metrics(wall_s=1.0, user_s=0.1, sys_s=0.1),
            figures={"operations": OPERATIONS, "seconds": gross * OPERATIONS / 1e9}
            | ({} if floor is None else {"floor_seconds": floor * OPERATIONS / 1e9}),
            proof=Proof(valid=True),
        )
        for place, ((name, configuration), said) in enumerate(cells.items())
        for number, (gross, floor) in enumerate(said)
    ]
    return experiment, summarise(experiment, records), records
