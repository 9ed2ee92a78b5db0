"""The latency of single calls as the page holds it: lines, words, numbers."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from freestone.records.schema import Experiment, Summary, TrialRecord
from freestone.reports import grid, tails, ticks
from freestone.reports.drawn import NOTHING, Figure, Table, document
from freestone.reports.grid import Grid, Piece

COLUMNS = {"median": "median", "p99.9": "99.9 %", "p99.99": "99.99 %", "longest": "longest"}
"""What a program says of its calls, ``malloc_ns/p99.9``, and what that is called."""

TITLES = {"malloc_and_write": "malloc and the first write", "malloc": "malloc alone", "free": "free"}
"""What the deeds of :data:`tails.DEEDS` are called."""

_COMPARED = {"malloc_and_write": "malloc", "free": "free"}
"""What a terminal is told of: the two by which allocators are compared, and what it calls them."""

_PLAIN = str.maketrans({"±": "+-", "µ": "u", "–": "-"})

_SAID = {
    "malloc_and_write": "malloc with the first write of the block's first word",
    "malloc": "malloc, without the first write of the block, which some allocators do inside it,",
    "free": "free",
}
_CAPTION = (
    "The share of all calls of {deed} of all rounds together that took so long or longer; both axes are logarithmic. "
    "Lower left is better; a line ends at the longest call. The clock's own floor is taken off. Dotted, and “no call” "
    "in the table: what the same clock says of no call at all, over a shorter time and in one thread. The longest "
    "calls include the machine's own pauses: what lies nearer to no call than to the others is its doing."
)
NO_CALL = "no call"


def part(experiment: Experiment, summary: Summary, records: Sequence[TrialRecord], workload: str) -> list[Figure]:
    """Two figures of malloc and one of free; none for most workloads."""
    found = []
    for deed in tails.DEEDS:
        chart = tails.draw(experiment, summary, records, workload, deed)
        if chart is not None:
            names = list(tails.courses(experiment, summary, records, workload, deed))
            numbers = _table(records, workload, deed, names)
            said = "; ".join(f"{row[0]} {row[-1]}" for row in numbers.rows)
            alternative = f"Share of calls of {TITLES[deed]} by how long they took; the longest of all: {said}."
            found.append(
                Figure(
                    f"{TITLES[deed]}, call by call",
                    _CAPTION.format(deed=_SAID[deed]),
                    alternative,
                    document(chart),
                    numbers,
                )
            )
    return found


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
        names = list(tails.courses(experiment, summary, records, workload, deed))
        if names:
            tables.append((title, {row[0]: row[1:] for row in _table(records, workload, deed, names).rows}))
    rows = [
        [Piece(name)] + [Piece(each[name][place]) for _, each in tables for place in (1, 2, -1)]
        for name in (tables[0][1] if tables else ())
        if all(name in each for _, each in tables)
    ]
    heads = [f"{title}\n{column}" for title, _ in tables for column in ("median", "99.9 %", "longest")]
    return Grid(
        f"{workload}: malloc with the first write of its block, and free, call by call", ["", *heads], rows, together=3
    )


def _table(records: Sequence[TrialRecord], workload: str, deed: str, names: Iterable[str]) -> Table:
    """A row for each configuration, and one for no call at all."""
    rows = [_row(records, workload, name, deed, name) for name in names]
    if tails.values(records, workload, None, f"{tails.NOTHING}_ns/longest"):
        rows.append(_row(records, workload, None, tails.NOTHING, NO_CALL))
    return Table(["", "calls", *COLUMNS.values(), "longest of all rounds"], rows)


def _row(records: Sequence[TrialRecord], workload: str, configuration: str | None, deed: str, name: str) -> list[str]:
    """Medians over the trials, the longest call of the median trial among them, and the longest of all."""
    calls = sum(tails.histogram(records, workload, configuration, deed).values())
    found = {key: tails.values(records, workload, configuration, f"{deed}_ns/{key}") for key in COLUMNS}
    step = max(tails.values(records, workload, configuration, "clock_step_ns"), default=0.0)
    medians = [_text(statistics.median(each), step) if each else NOTHING for each in found.values()]
    longest = _text(max(found["longest"]), step) if found["longest"] else NOTHING
    return [name, f"{calls:,}", *medians, longest]


def _text(nanoseconds: float, step: float) -> str:
    """What lies below the clock's step is not told apart, and what lies below two of them hardly."""
    said = ticks.brief("time", max(nanoseconds, step) * 1e-9)
    if nanoseconds < step:
        return f"< {said}"
    return f"{said} ± {ticks.brief('time', step * 1e-9)}" if nanoseconds < 2 * step else said
