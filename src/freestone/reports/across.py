"""Machines side by side: which allocator is best where, as tables and as sentences. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from freestone.analysis.across import ASPECTS, Across, There
from freestone.reports import quantities
from freestone.reports.grid import Grid, Piece

_NOBODY: Final = "–"


def grids(found: Sequence[Across]) -> list[Grid]:
    """A table for each workload: a row for each place, and who is best there, with the ratio to the baseline."""
    return [
        Grid(
            f"{each.workload} {_where(each)}",
            ["", *(f"best in {aspect}" for aspect in ASPECTS)],
            [[Piece(there.place), *(_best(there, aspect) for aspect in ASPECTS)] for there in each.places],
            " ".join(sentences(each)),
            left=frozenset({0, 1, 2}),
        )
        for each in found
    ]


def _where(each: Across) -> str:
    if not each.again:
        return f"on {each.machines} machines"
    machines = "one machine" if each.machines == 1 else f"{each.machines} machines"
    return f"in {len(each.places)} results of {machines}"


def _best(there: There, aspect: str) -> Piece:
    name = there.best.get(aspect)
    ratio = there.ratios.get(aspect, {}).get(name or "")
    if name is None or ratio is None:
        return Piece(_NOBODY, "same")
    return Piece(f"{name} ×{quantities.ratio_number(ratio)} {quantities.interval(ratio)}", "better")


def sentences(each: Across) -> list[str]:
    """What the places have in common, and where the ranking changes."""
    said = []
    for aspect in ASPECTS:
        name = each.agreed(aspect)
        if name is not None:
            said.append(f"{name} is best in {aspect} everywhere.")
    for turn in each.turns:
        said.append(
            f"The ranking in {turn.aspect} changes: {turn.configuration} takes less than {each.baseline} on "
            f"{_and(turn.less)}, and more on {_and(turn.more)}."
        )
    if not each.turns:
        what = "machine" if each.machines > 1 else "result"
        said.append(f"No ranking is seen to change from one {what} to another.")
    said += [f"{_and(names)} are one machine, measured more than once." for names in each.again]
    there = "in that result" if each.again else "on that machine"
    return [*said, f"×: ratio to {each.baseline} {there}; {_NOBODY}: nobody is really better. Never pooled."]


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
