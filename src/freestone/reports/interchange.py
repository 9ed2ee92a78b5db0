"""A comparison as other programs read it: Markdown, CSV and JSON, with the names that users of hyperfine know. Pure.

``mean``, ``stddev``, ``median``, ``min`` and ``max`` are those of the times of all good runs, the arithmetic ones. What
a table shows and what a ratio is made of is the geometric mean over rounds; it stands beside them.
"""

from __future__ import annotations

import csv
import io
import json
import shlex
import statistics
from collections.abc import Mapping, Sequence
from typing import Final

import freestone
from freestone.analysis import arms
from freestone.records.schema import Cell, Experiment, Ratio, Summary, TrialRecord, Workload
from freestone.reports import grid, quantities, scan_table
from freestone.reports.grid import Grid, Piece
from freestone.reports.quantities import Scale
from freestone.reports.table import MEDIAN

_COLUMNS: Final = ("user_s", "sys_s", "peak_rss_kib", "minor_faults")


def markdown(experiment: Experiment, records: Sequence[TrialRecord], summary: Summary) -> str:
    """The headline, a table for each workload, and one for each scan."""
    parts = [f"{' '.join(summary.headline.split())}\n"]
    parts += [grid.markdown(_table(each, summary), level=3) for each in experiment.workloads]
    parts += [grid.markdown(each, level=3) for each in scan_table.grids(experiment, summary)]
    return "\n".join(parts)


def csv_rows(experiment: Experiment, records: Sequence[TrialRecord], summary: Summary) -> str:
    """A row for each workload and configuration; units are in the names of columns, no number is where none counts."""
    parameters = list(dict.fromkeys(name for each in experiment.workloads for name in each.parameters))
    text = io.StringIO()
    writer: csv.DictWriter[str] | None = None
    for workload, cell, times, good in _cells(experiment, records, summary):
        time = cell.ratio.get(workload.time)
        memory = cell.ratio.get("peak_rss_kib")
        counted = cell.status == "ok"
        row = {
            "command": _label(cell),
            "workload": cell.workload,
            "configuration": cell.configuration,
            "status": cell.status,
            "reason": cell.reason,
            "trials_ok": cell.trials_ok,
            "trials_total": cell.trials_total,
            **{f"{name}_s": value for name, value in _spread(times).items()},
            "user_s": _mean(good, "user_s"),
            "system_s": _mean(good, "sys_s"),
            "geometric_mean_s": cell.figure(workload.time) if counted else None,
            **_interval("time_ratio", time),
            "peak_rss_kib": cell.figure("peak_rss_kib") if counted else None,
            **_interval("peak_rss_ratio", memory),
            "minor_faults": cell.figure("minor_faults") if counted else None,
            **{f"parameter_{name}": workload.parameters.get(name) for name in parameters},
        }
        if writer is None:
            writer = csv.DictWriter(text, list(row), lineterminator="\n")
            writer.writeheader()
        writer.writerow(row)
    return text.getvalue()


def json_results(experiment: Experiment, records: Sequence[TrialRecord], summary: Summary) -> str:
    """An object with ``results``, one for each workload and configuration, each with the time of every good run."""
    results = []
    for workload, cell, times, good in _cells(experiment, records, summary):
        peaks = [each.metrics.peak_rss_kib for each in good if each.metrics and each.metrics.peak_rss_kib is not None]
        results.append(
            {
                "command": _label(cell),
                **_spread(times),
                "user": _mean(good, "user_s"),
                "system": _mean(good, "sys_s"),
                "times": times,
                "memory_usage_byte": [1024 * peak for peak in peaks],
                "exit_codes": [each.exit_code for each in good],
                "parameters": workload.parameters,
                "command_line": workload.command,
                "workload": cell.workload,
                "configuration": cell.configuration,
                "status": cell.status,
                "reason": cell.reason,
                "trials_ok": cell.trials_ok,
                "trials_total": cell.trials_total,
                "geometric_mean": cell.figure(workload.time) if cell.status == "ok" else None,
                "ratios": {name: json.loads(ratio.model_dump_json()) for name, ratio in cell.ratio.items()},
            }
        )
    document = {
        "results": results,
        "headline": summary.headline,
        "baseline": summary.baseline,
        "best": summary.best,
        "rounds_complete": summary.rounds_complete,
        "experiment": experiment.id,
        "freestone_version": freestone.__version__,
    }
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _cells(
    experiment: Experiment, records: Sequence[TrialRecord], summary: Summary
) -> list[tuple[Workload, Cell, list[float], list[TrialRecord]]]:
    """Every cell with its workload, and the times and records of its good runs in their order, where they count."""
    workloads = {each.name: each for each in experiment.workloads}
    by_arm = arms.by_arm(arms.counted(experiment, records))
    found = []
    for cell in summary.cells:
        workload = workloads[cell.workload]
        mine = by_arm.get((cell.workload, cell.configuration), []) if cell.status == "ok" else []
        good = sorted(arms.good(mine), key=lambda record: (record.round, record.repeat))
        times = [value for record in good if (value := quantities.value_of(record, workload.time)) is not None]
        found.append((workload, cell, times, good))
    return found


def _label(cell: Cell) -> str:
    return f"{cell.workload} under {cell.configuration}"


def _spread(times: Sequence[float]) -> dict[str, float | None]:
    if not times:
        return dict.fromkeys(("mean", "stddev", "median", "min", "max"))
    return {
        "mean": statistics.fmean(times),
        "stddev": statistics.stdev(times) if len(times) > 1 else None,
        "median": statistics.median(times),
        "min": min(times),
        "max": max(times),
    }


def _mean(good: Sequence[TrialRecord], metric: str) -> float | None:
    values = [value for record in good if (value := quantities.value_of(record, metric)) is not None]
    return statistics.fmean(values) if values else None


def _interval(name: str, ratio: Ratio | None) -> Mapping[str, float | None]:
    known = ratio if ratio is not None and quantities.is_known(ratio) else None
    return {
        name: ratio.value if ratio else None,
        f"{name}_low": known.low if known else None,
        f"{name}_high": known.high if known else None,
    }


def _table(workload: Workload, summary: Summary) -> Grid:
    cells = [cell for cell in summary.cells if cell.workload == workload.name]
    shown = [
        key
        for key in (workload.time, *_COLUMNS)
        if any(quantities.has_figures(cell) and cell.figure(key) is not None for cell in cells)
    ] or [workload.time]
    scales = {
        key: Scale.over(
            quantities.quantity_of(key).kind,
            (value for cell in cells if quantities.has_figures(cell) and (value := cell.figure(key)) is not None),
        )
        for key in shown
    }
    heads = ["allocator"]
    for key in shown:
        unit = scales[key].unit
        heads.append(quantities.quantity_of(key).short + (f" [{unit}]" if unit else ""))
        heads += [f"to {summary.baseline} [95 %]"] if key == workload.time else []
    rows = []
    for cell in cells:
        row = [Piece(cell.configuration)]
        for key in shown:
            value = cell.figure(key) if quantities.has_figures(cell) else None
            mark = MEDIAN if cell.is_median(key) else ""
            row.append(Piece("–" if value is None else scales[key].number(value) + mark))
            row += [_against(cell, key, summary.baseline)] if key == workload.time else []
        rows.append(row)
    bad = [f"{cell.configuration}: {cell.reason}" for cell in cells if cell.status != "ok" and cell.reason]
    title = f"{workload.name}: {shlex.join(workload.command)}"
    rounds = f"{summary.rounds_complete} round{'' if summary.rounds_complete == 1 else 's'}; geometric means"
    if any(cell.is_median(key) for cell in cells for key in shown):
        rounds += f"; {MEDIAN}: a median, since a value was 0"
    return Grid(title, heads, rows, ". ".join([rounds, *bad]))


def _against(cell: Cell, key: str, baseline: str) -> Piece:
    if cell.status != "ok":
        return Piece(quantities.status_of(cell), "worse")
    ratio = cell.ratio.get(key)
    if ratio is None or cell.configuration == baseline:
        return Piece("1" if cell.configuration == baseline else "–")
    told = f"{quantities.ratio_number(ratio)} {quantities.interval(ratio)}"
    return Piece(told, "better" if ratio.different and ratio.value < 1 else "")
