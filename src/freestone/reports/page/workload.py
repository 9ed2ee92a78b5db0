"""One workload: its results, what was not measured and why, its figures."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from freestone.records.schema import Cell, Experiment, Ratio, Summary, TrialRecord
from freestone.reports import parameter_figure, parameter_series, quantities
from freestone.reports.drawn import NOTHING, Name
from freestone.reports.page import numbers, workload_figures
from freestone.reports.page.parts import ResultRow, Value, WorkloadPart
from freestone.reports.page.words import settings
from freestone.reports.parameter_series import Trials
from freestone.reports.quantities import MEDIAN, Quantity, Scale, quantity_of
from freestone.reports.shown import cells_of, columns_of, left_out, order_of


def workload_part(
    experiment: Experiment,
    summary: Summary,
    records: Sequence[TrialRecord],
    workload: str,
    names: dict[str, Name],
    trials: Trials,
) -> WorkloadPart:
    """Everything the page says of one workload; its anchor and what was counted of it are put in by the caller.

    Args:
        records: of this workload.
        names: by configuration.
        trials: of all workloads.
    """
    declared = next(w for w in experiment.workloads if w.name == workload)
    cells = cells_of(summary, workload)
    order = order_of(experiment, summary, workload)
    time = quantities.time_of(cells.values())
    shown = [
        key
        for key in (time, *columns_of(cells.values()))
        if any(quantities.has_figures(cells[name]) and cells[name].figure(key) is not None for name in order)
    ]
    scales = {key: Scale.over(quantity_of(key).kind, numbers.shown_values(cells.values(), key)) for key in shown}
    bad = [name for name in order if cells[name].status != "ok"]
    rows = [_result_row(names[name], cells[name], shown, scales) for name in order]
    return WorkloadPart(
        anchor="",
        name=workload,
        gist=_gist(rows, bad),
        command=shlex.join(declared.command),
        directory=declared.directory,
        environment=settings(declared.environment),
        headers=[(quantity_of(key).title, scales[key].unit) for key in shown],
        rows=rows,
        absent=[
            (names[name], quantities.STATUS_WORDS[cells[name].status], cells[name].reason or "no reason recorded")
            for name in bad
        ],
        notes=[*_notes(cells, order, summary, workload), *_trial_notes(order, records, workload)],
        figures=[
            *(
                parameter_figure.figure(experiment, each)
                for each in parameter_series.of_figures(trials, summary, workload)
            ),
            *workload_figures.figures_of(experiment, summary, records, workload, order, cells),
        ],
        panels=list(workload_figures.panels(experiment, summary, records, workload, order, names)),
        left_out=left_out(summary, [workload]),
        calls=None,
        references=None,
        also=numbers.also(order, cells, shown),
        trials=numbers.trials(records, workload),
    )


def _gist(rows: Sequence[ResultRow], bad: Sequence[str]) -> str:
    """``least time: freestone, ×0.87 [0.85, 0.89]; without a result: tbb``."""
    said = []
    best = next((row for row in rows if row.values and not row.status), None)
    if best is not None:
        time = best.values[0]
        against = "the baseline" if best.name.baseline else f"{time.ratio} {time.interval}".strip()
        said.append(f"least time: {best.name.text}{f', {against}' if against else ''}")
    if bad:
        said.append(f"without a result: {', '.join(bad)}")
    return "; ".join(said)


def _result_row(name: Name, cell: Cell, shown: Sequence[str], scales: dict[str, Scale]) -> ResultRow:
    status = "" if cell.status == "ok" else quantities.status_of(cell)
    if not quantities.has_figures(cell):
        return ResultRow(name, [], status)
    return ResultRow(name, [_value(name, cell, quantity_of(key), scales[key]) for key in shown], status)


def _value(name: Name, cell: Cell, quantity: Quantity, scale: Scale) -> Value:
    figure = cell.figure(quantity.key)
    if figure is None:
        return Value(NOTHING)
    shown = scale.number(figure) + (MEDIAN if cell.is_median(quantity.key) else "")
    ratio = cell.ratio.get(quantity.key)
    if name.baseline or ratio is None:
        return Value(shown)
    return Value(
        shown,
        ratio=f"×{quantities.ratio_number(ratio)}",
        interval=quantities.interval(ratio),
        verdict=quantities.verdict(quantity, ratio),
        mark=_mark(ratio),
    )


def _mark(ratio: Ratio) -> str:
    if not ratio.different:
        return "same" if quantities.is_known(ratio) else "unknown"
    return "better" if ratio.value < 1 else "worse"


def _notes(cells: dict[str, Cell], order: Sequence[str], summary: Summary, workload: str) -> list[str]:
    notes = []
    if any(cell.status == "different" for cell in cells.values()):
        notes.append(quantities.NOT_RANKED)
    for name in order:
        cell = cells[name]
        if cell.status == "ok" and cell.trials_ok < cell.trials_total:
            notes.append(f"{name}: {cell.trials_ok} of {cell.trials_total} trials count")
        if cell.note:
            notes.append(f"{name}: {cell.note}")
    if any(cell.is_median(key) for cell in cells.values() for key in columns_of(cells.values())):
        notes.append(f"{MEDIAN}: a median, since a value was 0; figures without it are geometric means")
    time = quantities.time_of(cells.values())
    found = summary.noise.get(workload, {}).get(time)
    if found is not None and quantities.is_known(found):
        said = f"{quantities.ratio_number(found)} {quantities.interval(found)}"
        notes.append(f"Check: {summary.baseline} against itself, {quantity_of(time).title.lower()} {said}")
        if found.different:
            notes.append(
                f"{summary.baseline} differs from itself: something else than the allocator changes, run by run"
            )
    return [*notes, *summary.advice.get(workload, [])]


def _trial_notes(order: Sequence[str], records: Sequence[TrialRecord], workload: str) -> Iterable[str]:
    for name in order:
        mine = [record for record in records if (record.workload, record.configuration) == (workload, name)]
        for note in dict.fromkeys(note for record in mine for note in record.notes):
            count = sum(note in record.notes for record in mine)
            yield f"{name}: {note} ({count} of {len(mine)} trials)"
