"""Results of several machines side by side: the best allocator on each, by its own rounds. Pure.

No machine is pooled with another. Results stand in one table if they measured the same work; machines, days and builds
of allocators may differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from freestone.analysis import machines
from freestone.analysis.comparable import evidence, workload_apart
from freestone.analysis.headline import MEMORY, TIME, aspects
from freestone.analysis.same_environment import environments_differ
from freestone.analysis.sides import Side
from freestone.records.schema import CellStatus, Environment, Experiment, Ratio, Summary, Workload

ASPECTS: Final = (TIME, MEMORY)

_THREADS_PER_CPU: Final = (1, 4)
"""Suites know them as ``{cores}`` and ``{4cores}``."""

_JUDGED: Final = ("name", "command", "environment", "reads", "service", "stages", "warmup", "input")
"""Fields of a workload that :func:`freestone.analysis.comparable.workload_apart` compares by their meaning."""

_OF_THE_PLACE: Final = ("directory", "memory_mib", "disk_mib")


@dataclass(frozen=True)
class Result:
    """The results of one folder, and its name."""

    name: str
    side: Side
    summary: Summary


@dataclass(frozen=True)
class Row:
    """One result of a workload."""

    name: str
    machine: str
    """Equal for results of one machine."""
    best: Mapping[str, tuple[str, Ratio]]
    """Aspect -> the best allocator and its ratio to the baseline; absent if none is really better."""
    known: frozenset[str]
    """Aspects in which any allocator has an interval."""
    without: Mapping[str, CellStatus]
    """Configurations without a result -> their status."""
    versions: Mapping[str, str]
    """Configuration -> the version of its allocator, if that is known."""


@dataclass(frozen=True)
class Across:
    """A workload in several results."""

    workload: str
    baseline: str
    rows: Sequence[Row]
    left_out: Mapping[str, str]
    """Names of results that measured other work -> the difference, in words."""


def across(results: Sequence[Result]) -> list[Across]:
    """Return a table for each workload that several results have.

    Args:
        results: their names are unlike each other.
    """
    by_name: dict[str, list[tuple[Result, Workload]]] = {}
    for result in results:
        for workload in result.side.experiment.workloads:
            by_name.setdefault(workload.name, []).append((result, workload))
    return [_table(found) for found in by_name.values() if len(found) > 1]


def _table(found: Sequence[tuple[Result, Workload]]) -> Across:
    # The others are compared with the result that has most evidence: one whose runs all failed has little.
    first, workload = max(found, key=lambda each: _telling(*each))
    apart = {
        other.name: reason
        for other, theirs in found
        if other is not first and (reason := _apart(first, workload, other, theirs)) is not None
    }
    rows = [_row(result, mine) for result, mine in found if result.name not in apart]
    return Across(workload.name, first.side.experiment.baseline, rows, apart)


def _telling(result: Result, workload: Workload) -> int:
    found = evidence(workload.name, result.side)
    return len(found.contents) + len(found.said)


def _row(result: Result, workload: Workload) -> Row:
    experiment = result.side.experiment
    cells = [cell for cell in result.summary.cells if cell.workload == workload.name]
    metrics = {aspect: aspects(workload)[aspect] for aspect in ASPECTS}
    ratios = {
        aspect: {cell.configuration: cell.ratio[metric] for cell in cells if metric in cell.ratio}
        for aspect, metric in metrics.items()
    }
    best = result.summary.best.get(workload.name, {})
    return Row(
        result.name,
        machines.key(experiment.machine),
        {
            aspect: (best[aspect], ratios[aspect][best[aspect]])
            for aspect in ASPECTS
            if best.get(aspect) in ratios[aspect]
        },
        frozenset(
            aspect
            for aspect, of_each in ratios.items()
            if any(each.low > 0 and each.high < math.inf for each in of_each.values())
        ),
        {cell.configuration: cell.status for cell in cells if cell.status != "ok"},
        {each.name: each.allocator.version for each in experiment.configurations if each.allocator.version},
    )


def _apart(first: Result, mine: Workload, other: Result, theirs: Workload) -> str | None:
    """Return the difference between the work of two results; None if there is none."""
    one, two = first.side.experiment, other.side.experiment
    if one.freestone_version != two.freestone_version:
        return f"another version of the lab: {two.freestone_version}, not {one.freestone_version}"
    if one.baseline != two.baseline:
        return f"another baseline: {two.baseline}, not {one.baseline}"
    if one.command_line[1:2] == two.command_line[1:2] == ["bench"]:
        theirs = _as_many_threads(one, mine, two, theirs)
    builds = machines.key(one.machine) != machines.key(two.machine)  # each machine may have its own
    seen = evidence(mine.name, first.side), evidence(theirs.name, other.side)
    found = workload_apart(mine, theirs, *seen, any_build=builds)
    if found is not None:
        return found
    for name in Workload.model_fields:
        if name not in (*_JUDGED, *_OF_THE_PLACE) and getattr(mine, name) != getattr(theirs, name):
            return f"another {name}: {getattr(theirs, name) or 'none'}, not {getattr(mine, name) or 'none'}"
    if one.timeout_s != two.timeout_s:
        return f"another timeout: {two.timeout_s or 'none'}, not {one.timeout_s or 'none'}"
    settings = {each.name: (each.allocator.name, each.environment, each.kernel) for each in one.configurations}
    for each in two.configurations:
        if settings.get(each.name) not in (None, (each.allocator.name, each.environment, each.kernel)):
            return f"other settings of {each.name}"
    told = environments_differ(_read_by_programs(one, mine), _read_by_programs(two, theirs))
    return None if told is None else f"another environment: {told}"


def _as_many_threads(one: Experiment, mine: Workload, two: Experiment, theirs: Workload) -> Workload:
    """Return the second workload as its suite has it on the first machine, if only the number of CPUs differs."""
    cpus = [experiment.machine.facts.get("cores_allowed") for experiment in (one, two)]
    depending = {tuple(str(times * int(each or 0)) for each in cpus) for times in _THREADS_PER_CPU}
    if None in cpus or len(mine.command) != len(theirs.command):
        return theirs
    pairs = zip(mine.command, theirs.command, strict=True)
    return theirs.model_copy(update={"command": [pair[0] if pair in depending else pair[1] for pair in pairs]})


def _read_by_programs(experiment: Experiment, workload: Workload) -> Environment | None:
    """Return the variables recorded with their values; the others are each machine's own."""
    if experiment.environment is None:
        return None
    told = {name: value for name, value in experiment.environment.told.items() if name not in workload.environment}
    return Environment(told=told)
