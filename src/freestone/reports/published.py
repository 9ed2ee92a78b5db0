"""Figures that others published, as series beside what was measured here: ``published_data/*.csv``.

The first lines of a file hold title, source, metric and reference of the figure. A row is one published value: what it
is called (``at``), whose it is (``name``), and which metric of which workload here is the same thing. Of workloads
separated by ``|`` the first that was measured counts; ``*`` is the geometric mean over all. Values are ratios to those
of ``to_workload`` or ``to_allocator``, if there is one: processors cancel out.
"""

from __future__ import annotations

import csv
import functools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from freestone.records.schema import InstructionCounts
from freestone.reports.parameter_series import OPERATIONS, Line, Point, Series, Trials, Values, point, ratio

Row = Mapping[str, str]


@dataclass(frozen=True)
class Reproduction:
    """One published table, and the same measured here."""

    title: str
    source: str
    series: Series


@dataclass(frozen=True)
class _Table:
    title: str
    source: str
    metric: str
    reference: str
    rows: Sequence[Row]


def reproductions(trials: Trials, counts: InstructionCounts | None = None) -> list[Reproduction]:
    """Every published table of which something was measured here, or counted by valgrind."""
    found = []
    for table in _tables():
        lines = {
            name: line
            for name in trials.configurations
            if _is_beside(name, table) and (line := _line(table, name, trials, counts))
        }
        measured = {at for line in lines.values() for at in line}
        if measured:
            found.append(Reproduction(table.title, table.source, _series(table, lines, measured)))
    return found


@functools.cache
def _tables() -> tuple[_Table, ...]:
    folder = files("freestone.reports") / "published_data"
    return tuple(
        _table(file.read_text(encoding="utf-8").splitlines())
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".csv")
    )


def _table(lines: Sequence[str]) -> _Table:
    title, source, axis = (line.removeprefix("# ") for line in lines[:3])
    metric, _, reference = axis.partition(" | ")
    return _Table(title, source, metric, reference.strip(), tuple(csv.DictReader(lines[3:])))


def _series(table: _Table, lines: Mapping[str, Line], measured: set[float]) -> Series:
    cases = dict.fromkeys(row["at"] for row in table.rows)
    places = {case: float(place) for place, case in enumerate(cases)}
    published: dict[str, dict[float, float]] = {}
    for row in table.rows:
        if places[row["at"]] in measured:
            published.setdefault(row["name"], {})[places[row["at"]]] = float(row["value"])
    return Series(
        table.metric,
        table.title,
        "case",
        "count",
        {place: case for case, place in places.items() if place in measured},
        lines,
        "Ratios" if table.reference else "Medians",
        is_words=True,
        reference=table.reference,
        published=published,
    )


def _is_beside(configuration: str, table: _Table) -> bool:
    """Whether a configuration stands in a table: of those that compare allocators, only the published ones."""
    names = tuple(row["name"] for row in table.rows)
    reference = table.rows[0]["to_allocator"]
    return not reference or (configuration != reference and configuration.startswith(names))


def _line(table: _Table, configuration: str, trials: Trials, counts: InstructionCounts | None) -> Line:
    found: Line = {}
    for place, case in enumerate(dict.fromkeys(row["at"] for row in table.rows)):
        row = next(row for row in table.rows if row["at"] == case)
        each = _point(row, configuration, trials, counts)
        if each is not None:
            found[float(place)] = each
    return found


def _point(row: Row, configuration: str, trials: Trials, counts: InstructionCounts | None) -> Point | None:
    metric, against = row["metric"], row["to_allocator"] or configuration
    if row["workload"] == "*":
        return ratio(*_means(metric, configuration, against, trials))
    workload = next((each for each in row["workload"].split("|") if each in trials.workloads), row["workload"])
    values = _values(metric, workload, configuration, trials, counts)
    if not (row["to_workload"] or row["to_allocator"]):
        return point(values)
    return ratio(values, _values(metric, row["to_workload"] or workload, against, trials, counts))


def _values(metric: str, workload: str, configuration: str, trials: Trials, counts: InstructionCounts | None) -> Values:
    pair = (workload, configuration)
    if metric in ("instructions", "data_reads", "data_writes"):
        counted = counts.counts if counts is not None else []
        mine = [each for each in counted if (each.workload, each.configuration, each.status) == (*pair, "ok")]
        return {0: value} if mine and (value := getattr(mine[0], metric)) else {}
    if workload not in trials.workloads:
        return {}
    return trials.values(workload, configuration, metric, divided=trials.have([workload], OPERATIONS))


def _means(metric: str, one: str, other: str, trials: Trials) -> tuple[Values, Values]:
    """The geometric means over the workloads that both have, by round."""
    pairs = [[trials.values(workload, name, metric) for name in (one, other)] for workload in trials.workloads]
    pairs = [pair for pair in pairs if all(values and min(values.values()) > 0 for values in pair)]
    means = []
    for side in zip(*pairs, strict=True):
        rounds = set.intersection(*(set(values) for values in side))
        means.append({each: statistics.geometric_mean(values[each] for values in side) for each in sorted(rounds)})
    return (means[0], means[1]) if means else ({}, {})
