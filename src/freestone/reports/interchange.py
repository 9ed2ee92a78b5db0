"""A comparison as other programs read it: Markdown, CSV and JSON, with the names that users of hyperfine know. Pure.

``mean``, ``stddev``, ``median``, ``min`` and ``max`` are those of the times of all good runs, the arithmetic ones. What
a table shows and what a ratio is made of is the geometric mean over rounds; it stands beside them.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import re
import shlex
import statistics
from collections.abc import Mapping, Sequence

import freestone
from freestone.analysis import arms
from freestone.records.schema import WALL_TIME, Cell, Experiment, Ratio, Summary, TrialRecord, Workload
from freestone.reports import deployment, grid, quantities, scan_table, table_notes
from freestone.reports.grid import Grid, Mark, Piece
from freestone.reports.quantities import MEDIAN, Scale
from freestone.reports.recommendation import Recommendation
from freestone.reports.shown import columns_of, has_switches, switches

Use = Sequence[Recommendation]


def markdown(experiment: Experiment, records: Sequence[TrialRecord], summary: Summary, use: Use = ()) -> str:
    """The headline, a table for each workload, one for each scan, and what to use.

    Args:
        use: what is recommended for its programs; in all three formats.
    """
    parts = [f"{' '.join(summary.headline.split())}\n"]
    for each in experiment.workloads:
        parts += [grid.markdown(table(each, summary), level=3), _notes(each, summary)]
    parts += [grid.markdown(each, level=3) for each in scan_table.grids(experiment, summary)]
    if use:
        parts += ["### To use it\n", *map(_section, use)]
    return "\n".join(part for part in parts if part)


def csv_rows(experiment: Experiment, records: Sequence[TrialRecord], summary: Summary, use: Use = ()) -> str:
    """A row for each workload and configuration; units are in the names of columns, no number is where none counts."""
    parameters = list(dict.fromkeys(name for each in experiment.workloads for name in each.parameters))
    text = io.StringIO()
    writer: csv.DictWriter[str] | None = None
    for workload, cell, times, _ in _cells(experiment, records, summary):
        counted = cell.status == "ok"
        time = cell.ratio.get(workload.time) if counted else None
        memory = cell.ratio.get("peak_rss_kib") if counted else None
        faults = cell.ratio.get("minor_faults") if counted else None
        row = {
            "command": _label(cell),
            "workload": cell.workload,
            "configuration": cell.configuration,
            "status": cell.status,
            "reason": cell.reason,
            "trials_ok": cell.trials_ok,
            "trials_total": cell.trials_total,
            **{f"{name}_s": value for name, value in _spread(times).items()},
            "user_s": cell.figure("user_s") if counted else None,
            "system_s": cell.figure("sys_s") if counted else None,
            "geometric_mean_s": cell.figure(workload.time) if counted else None,
            **_interval("time_ratio", time),
            "time_verdict": _verdict(cell, workload.time, summary.baseline),
            "peak_rss_kib": cell.figure("peak_rss_kib") if counted else None,
            **_interval("peak_rss_ratio", memory),
            "peak_rss_verdict": _verdict(cell, "peak_rss_kib", summary.baseline),
            "minor_faults": cell.figure("minor_faults") if counted else None,
            **_interval("minor_faults_ratio", faults),
            "minor_faults_verdict": _verdict(cell, "minor_faults", summary.baseline),
            "best_in": " and ".join(_best_in(cell, summary)),
            "use": _run_line(workload, cell, experiment, use),
            **{f"parameter_{name}": workload.parameters.get(name) for name in parameters},
        }
        if writer is None:
            writer = csv.DictWriter(text, list(row), lineterminator="\n")
            writer.writeheader()
        writer.writerow(row)
    return text.getvalue()


def json_results(experiment: Experiment, records: Sequence[TrialRecord], summary: Summary, use: Use = ()) -> str:
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
                "ratios": {
                    name: json.loads(ratio.model_dump_json())
                    for name, ratio in (cell.ratio.items() if cell.status == "ok" else ())
                },
                "verdicts": _verdicts(cell, summary.baseline),
                "best_in": _best_in(cell, summary),
            }
        )
    document = {
        "results": results,
        "headline": summary.headline,
        "baseline": summary.baseline,
        "best": summary.best,
        "to_use": [dataclasses.asdict(each) for each in use],
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
        name: ratio.value if ratio is not None and math.isfinite(ratio.value) else None,
        f"{name}_low": known.low if known else None,
        f"{name}_high": known.high if known else None,
    }


def table(workload: Workload, summary: Summary) -> Grid:
    """A workload's table as on a terminal: the same columns, verdicts and signs."""
    cells = [cell for cell in summary.cells if cell.workload == workload.name]
    time = quantities.time_of(cells)
    shown = [time, *columns_of(cells)]
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
        heads += [f"to {summary.baseline} [95 %]", "verdict"] if key == time else []
    rows = []
    for cell in cells:
        row = [Piece(cell.configuration)]
        for key in shown:
            value = cell.figure(key) if quantities.has_figures(cell) else None
            ratio = quantities.ratio_of(cell, key, summary.baseline)
            figure = "–" if value is None else scales[key].number(value) + (MEDIAN if cell.is_median(key) else "")
            if key == time:
                row += [Piece(figure), *_judged(cell, ratio, summary.baseline)]
            else:
                row.append(Piece(figure if ratio is None else f"{figure} {quantities.factor(ratio)}"))
        rows.append([*row, Piece(switches(cell) or "–")] if has_switches(cells) else row)
    heads += ["switches"] if has_switches(cells) else []
    return Grid(f"{workload.name}: {shlex.join(workload.command)}", heads, rows)


def _judged(cell: Cell, ratio: Ratio | None, baseline: str) -> tuple[Piece, Piece]:
    """The ratio of a cell's time with its interval, and what it means: a verdict, or why there is none."""
    if cell.status != "ok":
        return Piece("–"), Piece(quantities.status_of(cell), "worse")
    if ratio is None:
        return (Piece("1"), Piece("baseline")) if cell.configuration == baseline else (Piece("–"), Piece("–"))
    told = f"{quantities.ratio_number(ratio)} {quantities.interval(ratio)}"
    judgement = quantities.judgement(ratio)
    sign = {"same": f"{quantities.SAME} ", "unknown": f"{quantities.UNKNOWN} "}.get(judgement, "")
    time = quantities.quantity_of(WALL_TIME)
    mark: Mark = "better" if judgement == "less" else ""
    return Piece(told, mark), Piece(f"{sign}{quantities.verdict(time, ratio)}", mark)


def _notes(workload: Workload, summary: Summary) -> str:
    """What stands below a workload's table, as a list."""
    cells = [cell for cell in summary.cells if cell.workload == workload.name]
    return "".join(f"- {grid.escaped(note.text)}\n" for note in table_notes.below(summary, workload.name, cells))


def _section(told: Recommendation) -> str:
    """What to use, with the lines to be copied as they are."""
    text = "\n".join(told.lines)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{grid.escaped(told.sentence)}\n" + (f"\n{fence}\n{text}\n{fence}\n" if told.lines else "")


def _verdicts(cell: Cell, baseline: str) -> dict[str, str]:
    """By metric, for every ratio of a cell that is a result."""
    ratios = {key: quantities.ratio_of(cell, key, baseline) for key in cell.ratio}
    return {key: quantities.judgement(ratio) for key, ratio in ratios.items() if ratio is not None}


def _verdict(cell: Cell, key: str, baseline: str) -> str | None:
    """The judgement of one metric; what the baseline is called, and nothing where there is no result."""
    if cell.status == "ok" and cell.configuration == baseline:
        return "baseline"
    return _verdicts(cell, baseline).get(key)


def _best_in(cell: Cell, summary: Summary) -> list[str]:
    """What a configuration is really best in on its workload."""
    return [aspect for aspect, name in summary.best.get(cell.workload, {}).items() if name == cell.configuration]


def _run_line(workload: Workload, cell: Cell, experiment: Experiment, told: Sequence[Recommendation]) -> str | None:
    """The line that runs a program under what is recommended for it; None for every other configuration."""
    if not any(each.configuration == cell.configuration and cell.workload in each.workloads for each in told):
        return None
    chosen = next(each for each in experiment.configurations if each.name == cell.configuration)
    return deployment.run_line(workload, chosen)
