"""The latency of single calls in numbers: the same ones for the page and for a terminal."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from freestone.records.schema import Experiment, Summary, TrialRecord
from freestone.reports import grid, ticks
from freestone.reports.drawn import NOTHING, Table
from freestone.reports.grid import Grid, Piece
from freestone.reports.shown import counting, left_out
from freestone.reports.tails import data

COLUMNS = {"median": "median", "p99.9": "99.9 %", "p99.99": "99.99 %", "longest": "longest"}
"""What a program says of its calls, ``malloc_ns/p99.9``, and what that is called."""

_COMPARED = {"malloc_and_write": "malloc", "free": "free"}
"""What a terminal is told of: the two by which allocators are compared, and what it calls them."""

_PLAIN = str.maketrans({"±": "+-", "µ": "u", "–": "-"})
NO_CALL = "no call"


def render(
    experiment: Experiment,
    summary: Summary,
    records: Sequence[TrialRecord],
    *,
    width: int,
    colour: bool,
    ascii_only: bool = False,
) -> str:
    """The same numbers, fewer, for a terminal; empty where no workload tells of single calls."""
    grids = [_grid(experiment, summary, records, workload.name) for workload in experiment.workloads]
    text = "".join(grid.text(each, width=width, colour=colour, ascii_only=ascii_only) for each in grids if each.rows)
    return text.translate(_PLAIN).encode("ascii", "replace").decode() if ascii_only else text


def _grid(experiment: Experiment, summary: Summary, records: Sequence[TrialRecord], workload: str) -> Grid:
    """A row for each configuration; of each deed the median, 99.9 % and the longest call of all rounds."""
    tables = []
    for deed, title in _COMPARED.items():
        if data.courses(experiment, summary, records, workload, deed):
            numbers = table(experiment, summary, records, workload, deed)
            tables.append((title, {row[0]: row[1:] for row in numbers.rows}))
    rows = [
        [Piece(name)] + [Piece(each[name][place]) for _, each in tables for place in (1, 2, -1)]
        for name in (tables[0][1] if tables else ())
        if all(name in each for _, each in tables)
    ]
    heads = [f"{title}\n{column}" for title, _ in tables for column in ("median", "99.9 %", "longest")]
    return Grid(
        f"{workload}: malloc with the first write of its block, and free, call by call",
        ["", *heads],
        rows,
        left_out(summary, [workload]),
        together=3,
    )


def table(experiment: Experiment, summary: Summary, records: Sequence[TrialRecord], workload: str, deed: str) -> Table:
    """A row for each configuration, and one for no call at all."""
    mine = counting(summary, records, [workload])
    names = data.courses(experiment, summary, records, workload, deed)
    rows = [_row(mine, workload, name, deed, name) for name in names]
    if data.values(mine, workload, None, f"{data.NOTHING}_ns/longest"):
        rows.append(_row(mine, workload, None, data.NOTHING, NO_CALL))
    return Table(["", "calls", *COLUMNS.values(), "longest of all rounds"], rows)


def _row(records: Sequence[TrialRecord], workload: str, configuration: str | None, deed: str, name: str) -> list[str]:
    """Medians over the trials, the longest call of the median trial among them, and the longest of all."""
    calls = sum(data.histogram(records, workload, configuration, deed).values())
    found = {key: data.values(records, workload, configuration, f"{deed}_ns/{key}") for key in COLUMNS}
    step = max(data.values(records, workload, configuration, "clock_step_ns"), default=0.0)
    medians = [_text(statistics.median(each), step) if each else NOTHING for each in found.values()]
    longest = _text(max(found["longest"]), step) if found["longest"] else NOTHING
    return [name, f"{calls:,}", *medians, longest]


def _text(nanoseconds: float, step: float) -> str:
    """What lies below the clock's step is not told apart, and what lies below two of them hardly."""
    said = ticks.brief("time", max(nanoseconds, step) * 1e-9)
    if nanoseconds < step:
        return f"< {said}"
    return f"{said} ± {ticks.brief('time', step * 1e-9)}" if nanoseconds < 2 * step else said
