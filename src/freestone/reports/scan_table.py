"""The points of a scan side by side: one row for each, one column for each allocator, ratios and who is best. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from freestone.records.schema import Cell, Experiment, Summary, Workload
from freestone.reports import quantities
from freestone.reports.grid import Grid, Piece
from freestone.reports.quantities import Scale

_MEMORY: Final = "peak_rss_kib"


def grids(experiment: Experiment, summary: Summary) -> list[Grid]:
    """For each scan of an experiment a table of time and one of peak memory; none where there is no scan."""
    names = dict.fromkeys(workload.series for workload in experiment.workloads if workload.series is not None)
    found = []
    for name in names:
        points = [workload for workload in experiment.workloads if workload.series == name]
        for aspect, metric in (("time", points[0].time), ("peak memory", _MEMORY)):
            found.append(_grid(name, points, aspect, metric, experiment, summary))
    return found


def _grid(
    name: str, points: Sequence[Workload], aspect: str, metric: str, experiment: Experiment, summary: Summary
) -> Grid:
    cells = {(cell.workload, cell.configuration): cell for cell in summary.cells}
    configurations = [each.name for each in experiment.configurations]
    # The baseline first: everything else is held against it.
    order = [summary.baseline, *(each for each in configurations if each != summary.baseline)]
    parameters = list(points[0].parameters)
    rows = []
    for point in points:
        mine = [cells[point.name, each] for each in order]
        values = [value for cell in mine if quantities.has_figures(cell) and (value := cell.figure(metric)) is not None]
        scale = Scale.over("memory" if metric == _MEMORY else "time", values)
        best = summary.best.get(point.name, {}).get(aspect) or _unbeaten(mine, metric)
        row = [Piece(", ".join(point.parameters[each] for each in parameters))]
        row += [_piece(cell, metric, scale, summary.baseline) for cell in mine]
        rows.append([*row, Piece(best or "–", "better" if best else "same")])
    return Grid(
        f"{name}: {aspect} by {', '.join(parameters)}",
        [", ".join(parameters), *order, "best"],
        rows,
        f"×: ratio to {summary.baseline}, ≈: no difference seen; with the interval. 19 of 20 such scans have the truth "
        "in all of their intervals, over all rows at once. best: really less, and confirmed by rounds that did not "
        "choose it.",
        together=1,
    )


def _unbeaten(cells: Sequence[Cell], metric: str) -> str | None:
    """The baseline, where everybody else really takes more."""
    baseline, *others = cells
    ratios = [cell.ratio[metric] for cell in others if cell.status == "ok" and metric in cell.ratio]
    behind = bool(ratios) and all(ratio.different and ratio.value > 1 for ratio in ratios)
    return baseline.configuration if baseline.status == "ok" and behind else None


def _piece(cell: Cell, metric: str, scale: Scale, baseline: str) -> Piece:
    value = cell.figure(metric) if quantities.has_figures(cell) else None
    if cell.status != "ok":
        word = quantities.status_of(cell)
        return Piece(word if value is None else f"{scale.text(value)} {word}", "worse")
    if value is None:
        return Piece("–", "same")
    ratio = cell.ratio.get(metric)
    if ratio is None or cell.configuration == baseline:
        return Piece(scale.text(value))
    if not quantities.is_known(ratio):
        return Piece(f"{scale.text(value)} ?", "same")
    if not ratio.different:
        return Piece(f"{scale.text(value)} ≈ {quantities.interval(ratio)}", "same")
    told = f"{scale.text(value)} ×{quantities.ratio_number(ratio)} {quantities.interval(ratio)}"
    return Piece(told, "better" if ratio.value < 1 else "worse")
