"""Counts of system calls as tables: one for each workload, a row for each configuration, a column for each call."""

from __future__ import annotations

from collections.abc import Sequence

from freestone.records.schema import CallCount, CallCounts
from freestone.reports import grid, quantities
from freestone.reports.grid import Grid, Piece


def tables(counts: CallCounts) -> dict[str, Grid]:
    """By workload. The most frequent call stands first; the last column is the sum."""
    return {
        workload: _table(workload, [each for each in counts.counts if each.workload == workload])
        for workload in dict.fromkeys(each.workload for each in counts.counts)
    }


def _table(workload: str, counts: Sequence[CallCount]) -> Grid:
    totals: dict[str, int] = {}
    for each in counts:
        for name, number in each.calls.items():
            totals[name] = totals.get(name, 0) + number
    names = sorted(totals, key=lambda name: (-totals[name], name))
    rows = []
    for each in counts:
        row = [Piece(each.configuration)]
        if each.status == "ok":
            row += [Piece(f"{each.calls.get(name, 0):,}") for name in names]
            row.append(Piece(f"{sum(each.calls.values()):,}"))
        else:
            row += [Piece("–", "same")] * len(names)
            row.append(Piece(quantities.STATUS_WORDS[each.status], "worse"))
        rows.append(row)
    bad = [f"{each.configuration}: {each.reason}" for each in counts if each.status != "ok"]
    return Grid(workload, ["", *names, "in all"], rows, "; ".join(bad))


def render(counts: CallCounts, *, width: int, colour: bool, ascii_only: bool = False) -> str:
    """For a terminal."""
    parts = [grid.text(each, width=width, colour=colour, ascii_only=ascii_only) for each in tables(counts).values()]
    text = "\n".join([*parts, "Counted by strace in runs of their own, start-up included; never timed."])
    return text.replace("–", "-") if ascii_only else text
