"""Machines side by side, as a table for each workload. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from freestone.analysis.across import ASPECTS, Across, Row
from freestone.analysis.headline import ended
from freestone.records.schema import CellStatus
from freestone.reports import quantities
from freestone.reports.grid import Grid, Piece

NONE_BETTER: Final = "–"


def tables(found: Sequence[Across], lacking: Sequence[str] = ()) -> list[Grid]:
    """Return a table for each workload, with a row for each result.

    Args:
        found: the workloads.
        lacking: places of the order without results.
    """
    return [_table(each, lacking) for each in found]


def no_results(places: Sequence[str]) -> str:
    """Return a sentence about places without results."""
    return f"no results yet: {', '.join(places)}"


def _table(each: Across, lacking: Sequence[str]) -> Grid:
    without = any(row.without for row in each.rows)
    rows = [
        [
            Piece(row.name),
            *(_best(row, aspect) for aspect in ASPECTS),
            *([Piece(_without(row.without), "worse")] if without else []),
        ]
        for row in each.rows
    ]
    heads = ["", *(f"best in {aspect}" for aspect in ASPECTS), *(["no result"] if without else [])]
    count = len({row.machine for row in each.rows})
    machines = f"{count} machine{'' if count == 1 else 's'}"
    where = f" on {machines}" if count == len(each.rows) else f": {len(each.rows)} results of {machines}"
    return Grid(each.workload + where, heads, rows, "\n".join(_notes(each, lacking)), left=frozenset(range(4)))


def _best(row: Row, aspect: str) -> Piece:
    if aspect not in row.best:
        return Piece(NONE_BETTER if aspect in row.known else quantities.UNKNOWN, "same")
    name, ratio = row.best[aspect]
    return Piece(f"{name} ×{quantities.ratio_number(ratio)} {quantities.interval(ratio)}", "better")


def _without(without: Mapping[str, CellStatus]) -> str:
    return ", ".join(f"{name} ({quantities.STATUS_WORDS[status]})" for name, status in without.items())


def _notes(each: Across, lacking: Sequence[str]) -> list[str]:
    by_machine: dict[str, list[str]] = {}
    for row in each.rows:
        by_machine.setdefault(row.machine, []).append(row.name)
    again = [names for names in by_machine.values() if len(names) > 1]
    return [
        f"×: ratio to {each.baseline} on that machine, by its own rounds; {NONE_BETTER}: none is better than it; "
        f"{quantities.UNKNOWN}: too few results. Machines are not pooled.",
        *(f"{', '.join(names)} are one machine, measured more than once." for names in again),
        *_other_versions(each),
        *(ended(f"Left out: {name}: {reason}") for name, reason in each.left_out.items()),
        *([ended(no_results(lacking))] if lacking else []),
    ]


def _other_versions(each: Across) -> list[str]:
    """Return a line for each allocator that is not of one version on all machines."""
    found: dict[str, dict[str, list[str]]] = {}
    for row in each.rows:
        for name, version in row.versions.items():
            found.setdefault(name, {}).setdefault(version, []).append(row.name)
    return [
        ended(f"{name} is " + ", ".join(f"{version} on {' and '.join(on)}" for version, on in versions.items()))
        for name, versions in found.items()
        if len(versions) > 1
    ]
