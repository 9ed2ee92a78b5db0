"""The latency of single calls as the page holds it: lines, words, numbers."""

from __future__ import annotations

from collections.abc import Sequence

from freestone.records.schema import Experiment, Summary, TrialRecord
from freestone.reports.drawn import Figure
from freestone.reports.shown import left_out
from freestone.reports.tails import chart, data
from freestone.reports.tails.numbers import table
from freestone.reports.vega import document

TITLES = {"malloc_and_write": "malloc and the first write", "malloc": "malloc alone", "free": "free"}
"""What the deeds of :data:`data.DEEDS` are called."""

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


def part(experiment: Experiment, summary: Summary, records: Sequence[TrialRecord], workload: str) -> list[Figure]:
    """Two figures of malloc and one of free; none for most workloads."""
    found = []
    for deed in data.DEEDS:
        drawn = chart.draw(experiment, summary, records, workload, deed)
        if drawn is not None:
            numbers = table(experiment, summary, records, workload, deed)
            said = "; ".join(f"{row[0]} {row[-1]}" for row in numbers.rows)
            alternative = f"Share of calls of {TITLES[deed]} by how long they took; the longest of all: {said}."
            found.append(
                Figure(
                    f"{TITLES[deed]}, call by call",
                    f"{_CAPTION.format(deed=_SAID[deed])} {left_out(summary, [workload])}".rstrip(),
                    alternative,
                    document(drawn),
                    numbers,
                )
            )
    return found
