"""The latency of single calls as the page holds it: lines, words, numbers."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from freestone.records.schema import Experiment, Summary, TrialRecord
from freestone.reports import tails, ticks
from freestone.reports.drawn import NOTHING, Figure, Table, document

COLUMNS = {"median": "median", "p99.9": "99.9 %", "p99.99": "99.99 %", "longest": "longest"}
"""What a program says of its calls, ``malloc_ns/p99.9``, and what that is called."""

TITLES = {"malloc_and_write": "malloc and the first write", "malloc": "malloc alone", "free": "free"}
"""What the deeds of :data:`tails.DEEDS` are called."""

_SAID = {
    "malloc_and_write": "malloc with the first write of the block's first word",
    "malloc": "malloc, without the first write of the block, which some allocators do inside it,",
    "free": "free",
}
_CAPTION = (
    "The share of all calls of {deed} of all rounds together that took so long or longer; both axes are logarithmic. "
    "Lower left is better; a line ends at the longest call. The clock's own floor is taken off. Dotted: what the same "
    "clock says of no call at all, over a shorter time and in one thread: nearer to it than to the others is the "
    "machine's doing."
)


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


def _table(records: Sequence[TrialRecord], workload: str, deed: str, names: Iterable[str]) -> Table:
    """Medians over the trials, the longest call of the median trial among them, and the longest of all."""
    rows = []
    for name in names:
        calls = sum(tails.histogram(records, workload, name, deed).values())
        values = {key: _values(records, workload, name, f"{deed}_ns/{key}") for key in COLUMNS}
        step = max(_values(records, workload, name, "clock_step_ns"), default=0.0)
        medians = [_text(statistics.median(found), step) if found else NOTHING for found in values.values()]
        longest = _text(max(values["longest"]), step) if values["longest"] else NOTHING
        rows.append([name, f"{calls:,}", *medians, longest])
    return Table(["", "calls", *COLUMNS.values(), "longest of all rounds"], rows)


def _values(records: Iterable[TrialRecord], workload: str, configuration: str, figure: str) -> list[float]:
    return [
        value
        for record in records
        if (record.workload, record.configuration, record.repeat) == (workload, configuration, 0)
        and record.status == "ok"
        and (value := (record.figures or {}).get(figure)) is not None
    ]


def _text(nanoseconds: float, step: float) -> str:
    """What lies below the clock's step is not told apart."""
    said = ticks.brief("time", max(nanoseconds, step) * 1e-9)
    return f"< {said}" if nanoseconds < step else said
