"""What a reproduction is, and which of them an experiment holds."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from freestone.records.schema import Experiment, InstructionCounts, Summary, TrialRecord
from freestone.reports import quantities
from freestone.reports.grid import Grid
from freestone.reports.shown import counting

SAME = 1.05
"""Two ratios are the same answer where both lie within this of 1, or both on the same side of it."""

FindingKind = Literal["agrees", "differs", "artefact", "open"]


@dataclass(frozen=True)
class Finding:
    """One sentence about a published figure, and what it comes to."""

    kind: FindingKind
    text: str


@dataclass(frozen=True)
class Point:
    """A published or a measured value on the axis that both share."""

    group: str
    name: str
    here: bool
    value: float


@dataclass(frozen=True)
class Reproduction:
    """One published table beside this lab's own measurement."""

    title: str
    source: str
    axis: str
    points: Sequence[Point]
    table: Grid
    findings: Sequence[Finding]


class Measured:
    """What was measured here, by workload and configuration: medians over the trials that count."""

    def __init__(self, experiment: Experiment, summary: Summary, records: Sequence[TrialRecord]) -> None:
        self._trials: dict[tuple[str, str], list[TrialRecord]] = {}
        for record in counting(summary, records):
            self._trials.setdefault((record.workload, record.configuration), []).append(record)
        self.configurations = [each.name for each in experiment.configurations]
        self.workloads = [each.name for each in experiment.workloads]
        self._time = {each.name: each.time for each in experiment.workloads}
        self._commands = {each.name: each.command for each in experiment.workloads}

    def median(self, workload: str, configuration: str, metric: str) -> float | None:
        """None where it was not measured, or not proved."""
        values = [
            value
            for record in self._trials.get((workload, configuration), [])
            if (value := quantities.value_of(record, metric)) is not None
        ]
        return statistics.median(values) if values else None

    def time(self, workload: str, configuration: str) -> float | None:
        """Seconds."""
        return self.median(workload, configuration, self._time[workload]) if workload in self._time else None

    def option(self, workload: str, name: str) -> float | None:
        """The number behind an option of the workload's command."""
        command = self._commands.get(workload, [])
        try:
            return float(command[command.index(name) + 1])
        except (ValueError, IndexError):
            return None

    def first(self, workloads: Sequence[str]) -> str | None:
        """The first of these workloads that was measured."""
        return next((name for name in workloads if name in self._time), None)


def side(ratio: float) -> int:
    """-1 for less than 1, 1 for more, 0 for as much."""
    return 0 if 1 / SAME <= ratio <= SAME else -1 if ratio < 1 else 1


def reproductions(
    experiment: Experiment,
    summary: Summary,
    records: Sequence[TrialRecord],
    instructions: InstructionCounts | None = None,
) -> list[Reproduction]:
    """Every published table of which the experiment measured, or valgrind counted, enough to say something."""
    from freestone.reports.published import faults_2001, parallel, parallel_references, patterns, population

    measured = Measured(experiment, summary, records)
    compared: list[Callable[[Measured], Reproduction | None]] = [
        patterns.reproduce,
        faults_2001.reproduce,
        parallel.reproduce,
        population.reproduce,
    ]
    counted = parallel_references.reproduce(instructions) if instructions is not None else None
    return [found for found in (*(each(measured) for each in compared), counted) if found is not None]
