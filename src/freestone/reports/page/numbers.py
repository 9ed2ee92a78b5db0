"""The numbers of one workload as tables: behind each figure, and of every trial."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from freestone.analysis import arms
from freestone.records.schema import Cell, Summary, TrialRecord
from freestone.reports import quantities
from freestone.reports.drawn import NOTHING, Table
from freestone.reports.quantities import QUANTITIES, Scale, quantity_of
from freestone.reports.shown import values_of


def ratio_table(order: Sequence[str], cells: dict[str, Cell], baseline: str, key: str) -> Table:
    """Behind the figure of ratios: the ratio of each configuration to the baseline, in figures and in words."""
    rows = []
    for name in order:
        ratio = cells[name].ratio.get(key)
        if cells[name].status != "ok":
            rows.append([name, quantities.status_of(cells[name]), NOTHING, NOTHING])
        elif name == baseline:
            rows.append([name, "1", NOTHING, "baseline"])
        elif ratio is None:
            rows.append([name, NOTHING, NOTHING, NOTHING])
        else:
            said = quantities.verdict(quantity_of(key), ratio)
            rows.append([name, quantities.ratio_number(ratio), quantities.interval(ratio), said])
    return Table(["", "ratio", "interval", "verdict"], rows)


def points_table(
    records: Sequence[TrialRecord], workload: str, order: Sequence[str], cells: dict[str, Cell], key: str
) -> Table:
    """Behind the figure of every trial: the mean, the ends and the number of trials, each row in its unit."""
    rows = []
    for name in order:
        values = [value for _, value in values_of(records, workload, name, key)]
        status = "" if cells[name].status == "ok" else quantities.status_of(cells[name])
        if not quantities.has_figures(cells[name]) or not values:
            rows.append([name, status or NOTHING, NOTHING, NOTHING, NOTHING])
            continue
        scale = Scale.over(quantity_of(key).kind, values)
        mean = cells[name].figure(key)
        shown = scale.text(mean) if mean is not None else NOTHING
        shown += f" (median, {status})" if status else ""
        rows.append([name, shown, scale.text(min(values)), scale.text(max(values)), str(len(values))])
    return Table(["", "mean", "smallest", "largest", "trials"], rows)


def trade_table(order: Sequence[str], cells: dict[str, Cell], baseline: str) -> Table:
    """Behind time against memory: both ratios with their intervals."""
    rows = []
    held = quantities.time_of(cells.values())
    for name in order:
        time, memory = (cells[name].ratio.get(key) for key in (held, "peak_rss_kib"))
        if cells[name].status != "ok":
            rows.append([name, quantities.status_of(cells[name]), NOTHING])
        elif name == baseline:
            rows.append([name, "1", "1"])
        else:
            shown = [f"{quantities.ratio_number(r)} {quantities.interval(r)}" if r else NOTHING for r in (time, memory)]
            rows.append([name, *shown])
    return Table(["", f"{quantity_of(held).title.lower()}, ratio", "peak RSS, ratio"], rows)


def noise_table(summary: Summary, workload: str) -> Table:
    """Behind the check of the machine: the baseline against itself, by quantity."""
    found = summary.noise[workload]
    return Table(
        ["", "ratio", "interval"],
        [
            [q.title, quantities.ratio_number(found[q.key]), quantities.interval(found[q.key])]
            for q in QUANTITIES
            if q.key in found
        ],
    )


def also(order: Sequence[str], cells: dict[str, Cell], shown: Sequence[str]) -> Table | None:
    """What was measured beside the quantities that are shown already; None when there is nothing more."""
    good = [name for name in order if quantities.has_figures(cells[name])]
    measured = {key for name in good for key in (*cells[name].mean, *cells[name].median)} - set(shown)
    known = [quantity.key for quantity in QUANTITIES]
    keys = sorted(measured, key=lambda key: (known.index(key) if key in known else len(known), key))
    if not keys:
        return None
    scales = {key: Scale.over(quantity_of(key).kind, shown_values(cells.values(), key)) for key in keys}
    rows = []
    for name in good:
        row = [name if cells[name].status == "ok" else f"{name}, {quantities.status_of(cells[name])}"]
        for key in keys:
            ratio = cells[name].ratio.get(key)
            against = f" ×{quantities.ratio_number(ratio)} {quantities.interval(ratio)}" if ratio else ""
            figure = cells[name].figure(key)
            row.append(f"{NOTHING if figure is None else scales[key].number(figure)}{against}")
        rows.append(row)
    return Table(["", *(f"{quantity_of(key).title} {scales[key].unit}".strip() for key in keys)], rows)


def trials(records: Sequence[TrialRecord], workload: str) -> Table:
    """Every record of a workload in the order of rounds, those without figures with the reason."""
    mine = [record for record in records if record.workload == workload]
    good = arms.measured(mine)
    counters = {name for record in good if record.metrics is not None for name in record.metrics.counters}
    names = [*(q.key for q in QUANTITIES), *sorted(counters)]
    keys = [key for key in names if any(quantities.value_of(record, key) is not None for record in good)]
    scales = {
        key: Scale.over(
            quantity_of(key).kind, [v for record in good if (v := quantities.value_of(record, key)) is not None]
        )
        for key in keys
    }
    columns = ["round", "place", "configuration", "status"]
    columns += [f"{quantity_of(key).short} {scales[key].unit}".strip() for key in keys]
    rows = []
    for record in sorted(mine, key=lambda r: (r.round, r.position)):
        row = [str(record.round + 1), str(record.position + 1)]
        row.append(f"{record.configuration}, again" if record.repeat else record.configuration)
        reason = f": {record.reason}" if record.reason else ""
        status = "ok" if record.status == "ok" else f"{quantities.STATUS_WORDS[record.status]}{reason}"
        if arms.measured([record]):
            values = [quantities.value_of(record, key) for key in keys]
            row.append(status)
            row += [
                NOTHING if value is None else scales[key].number(value) for key, value in zip(keys, values, strict=True)
            ]
        else:
            row += [status, *([NOTHING] * len(keys))]
        rows.append(row)
    return Table(columns, rows)


def shown_values(cells: Iterable[Cell], key: str) -> list[float]:
    """What a column shows of a quantity, for a scale that suits all of it."""
    return [figure for cell in cells if quantities.has_figures(cell) and (figure := cell.figure(key)) is not None]
