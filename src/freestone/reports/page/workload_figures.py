"""The figures of one workload, each in words and in numbers too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from freestone.records.schema import Cell, Experiment, Summary, TrialRecord
from freestone.reports import figures, quantities
from freestone.reports.drawn import Figure, Name, Panel
from freestone.reports.page import numbers
from freestone.reports.quantities import Scale
from freestone.reports.shown import values_of
from freestone.reports.vega import document


def figures_of(
    experiment: Experiment,
    summary: Summary,
    records: Sequence[TrialRecord],
    workload: str,
    order: Sequence[str],
    cells: dict[str, Cell],
) -> Iterable[Figure]:
    """Time, memory, faults: ratios, every trial, time against memory, and the check of the machine.

    Args:
        order: configurations from the top to the bottom of each figure.
        cells: by configuration.
    """
    baseline = summary.baseline
    time = quantities.time_of(cells.values())

    def ratios(key: str, title: str) -> Figure:
        table = numbers.ratio_table(order, cells, baseline, key)
        return Figure(
            title,
            f"Ratio to {baseline}, paired within rounds, with its interval: those of a table hold all at once.",
            _say(title, order, cells, [row[-1] for row in table.rows]),
            document(figures.ratios(experiment, summary, workload, key)),
            table,
        )

    def points(key: str, title: str) -> Figure:
        table = numbers.points_table(records, workload, order, cells, key)
        return Figure(
            title,
            _dots(order, cells),
            _say(f"{title}, geometric means", order, cells, [row[1] for row in table.rows]),
            document(figures.points(experiment, summary, records, workload, key)),
            table,
        )

    def measured(key: str) -> bool:
        return any(values_of(records, workload, name, key) for name in order if quantities.has_figures(cells[name]))

    if any(cells[name].ratio for name in order):
        yield ratios(time, "Time against the baseline")
    yield points(time, "Time of every trial")
    if any("peak_rss_kib" in cells[name].ratio for name in order):
        table = numbers.trade_table(order, cells, baseline)
        yield Figure(
            "Time against memory",
            "Lower left is better in both. Bars are intervals; the dotted stairs join what nothing else beats in both.",
            _say("Time and peak RSS as ratios", order, cells, [f"{row[1]} and {row[2]}" for row in table.rows]),
            document(figures.trade(experiment, summary, workload)),
            table,
        )
    chart = figures.noise(summary, workload)
    if chart is not None:
        table = numbers.noise_table(summary, workload)
        said = "; ".join(f"{row[0]} {row[2]}" for row in table.rows)
        yield Figure(
            "Check of the machine",
            f"{baseline} run twice in every round: the second run over the first. It should be 1, and hides nothing.",
            f"A/A intervals: {said}",
            document(chart),
            table,
        )
    for key, title in (
        ("peak_rss_kib", "Peak memory"),
        ("end_rss_kib", "Memory at the end"),
        ("minor_faults", "Minor page faults"),
        ("sys_s", "System time"),
    ):
        if measured(key):
            yield points(key, title)


def panels(
    experiment: Experiment,
    summary: Summary,
    records: Sequence[TrialRecord],
    workload: str,
    order: Sequence[str],
    names: dict[str, Name],
) -> Iterable[Panel]:
    """Memory over time, a panel for each configuration that has a result."""
    for name in order:
        chart = figures.series(experiment, summary, records, workload, name)
        if chart is not None:
            peak = Scale.over("memory", values := _tree_peaks(records, workload, name))
            said = f"Resident memory over time under {name}; sampled peak {peak.text(max(values))}"
            yield Panel(names[name], said, document(chart))


def _tree_peaks(records: Iterable[TrialRecord], workload: str, name: str) -> list[float]:
    return [
        float(max(sample.rss_kib for sample in record.metrics.series))
        for record in records
        if (record.workload, record.configuration, record.status) == (workload, name, "ok")
        and record.metrics is not None
        and record.metrics.series
    ]


def _say(what: str, order: Sequence[str], cells: dict[str, Cell], values: Sequence[str]) -> str:
    said = [
        f"{name} {value if cells[name].status == 'ok' else quantities.status_of(cells[name])}"
        for name, value in zip(order, values, strict=True)
    ]
    return f"{what}: {'; '.join(said)}."


def _dots(order: Sequence[str], cells: dict[str, Cell]) -> str:
    said = "Every trial is a dot, later rounds lower; the bar and the number are the geometric mean."
    hollow = any(cells[name].status == "different" for name in order)
    return f"{said} Hollow: of other output, and not ranked." if hollow else said
