"""A results folder as pandas data frames: ``freestone.load("results/...")``."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from freestone.analysis import summarise
from freestone.records import installation
from freestone.records.schema import FIGURE, Metrics, Summary, TrialRecord
from freestone.reports import source

_OF_TRIAL = ("workload", "configuration", "round", "position", "repeat", "started_at", "status", "reason")
_METRICS = [name for name in Metrics.model_fields if name not in ("counters", "series")]


@dataclass(frozen=True)
class Frames:
    """The data frames of one results folder."""

    trials: Any
    """One row per trial: workload, configuration, round (from 0), position, repeat, started_at, status, reason, every
    metric of the schema (``_s`` seconds, ``_kib`` kibibytes), counters by name, and ``figure:NAME`` for each figure of
    the program's own. A value that was not measured is null."""
    cells: Any
    """One row per workload, configuration and metric: mean (geometric) and median in the metric's unit, and against the
    baseline ratio, low, high (simultaneous intervals), pairs, different. See ``left_out`` for the others."""
    left_out: Any
    """One row per workload and configuration without a result: status (failed, timeout, invalid) and reason."""


def load(folder: str | Path) -> Frames:
    """Read a results folder of ``freestone compare`` or ``bench``; the summary is computed from its records.

    Damaged lines are left out, with a warning.

    Raises:
        freestone.records.store.StoreError: it is no results folder, or cannot be read.
        ImportError: pandas is not installed.
    """
    try:
        from pandas import DataFrame
    except ModuleNotFoundError as error:
        raise ImportError(f"data frames need: {installation.to_get('notebook', ['pandas'])}") from error
    found = source.read(Path(folder), summarise)
    if found.damage is not None:
        warnings.warn(found.damage, stacklevel=2)
    left_out = ("workload", "configuration", "status", "reason")
    lacking = [{name: getattr(cell, name) for name in left_out} for cell in found.summary.cells if cell.status != "ok"]
    return Frames(
        trials=DataFrame([_trial(record) for record in found.records]),
        cells=DataFrame(_cells(found.summary)),
        left_out=DataFrame(lacking, columns=list(left_out)),
    )


def _trial(record: TrialRecord) -> dict[str, Any]:
    return (
        {name: getattr(record, name) for name in _OF_TRIAL}
        | {name: getattr(record.metrics, name, None) for name in _METRICS}
        | (record.metrics.counters if record.metrics is not None else {})
        | {FIGURE + name: value for name, value in (record.figures or {}).items()}
    )


def _cells(summary: Summary) -> list[dict[str, Any]]:
    return [
        {
            "workload": cell.workload,
            "configuration": cell.configuration,
            "metric": metric,
            "mean": cell.mean.get(metric),
            "median": median,
            "ratio": ratio.value if ratio is not None else None,
            **{name: getattr(ratio, name, None) for name in ("low", "high", "pairs", "different")},
        }
        for cell in summary.cells
        if cell.status == "ok"
        for metric, median in cell.median.items()
        for ratio in [cell.ratio.get(metric)]
    ]
