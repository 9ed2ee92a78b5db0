"""What of a workload's records is shown, and in which order."""

from __future__ import annotations

import math
from collections.abc import Iterable

from freestone.records.schema import Cell, Experiment, Summary, TrialRecord
from freestone.reports import quantities


def order_of(experiment: Experiment, summary: Summary, workload: str) -> list[str]:
    """The configurations of a workload from the least time to the most, those without a valid trial last."""
    cells = cells_of(summary, workload)
    names = [c.name for c in experiment.configurations if c.name in cells]
    time = quantities.time_of(cells.values())

    def rank(name: str) -> tuple[int, float]:
        cell = cells[name]
        figure = cell.figure(time)
        return (0, math.inf if figure is None else figure) if cell.status == "ok" else (1, 0.0)

    return sorted(names, key=rank)


def values_of(records: Iterable[TrialRecord], workload: str, configuration: str, key: str) -> list[tuple[int, float]]:
    """(round, value) of every ok trial; the baseline's second runs are the noise, not part of it."""
    found = []
    for record in records:
        mine = (record.workload, record.configuration, record.repeat) == (workload, configuration, 0)
        if mine and record.status == "ok":
            value = quantities.value_of(record, key)
            if value is not None and math.isfinite(value):
                found.append((record.round, value))
    return sorted(found)


def cells_of(summary: Summary, workload: str) -> dict[str, Cell]:
    return {cell.configuration: cell for cell in summary.cells if cell.workload == workload}

