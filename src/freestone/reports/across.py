"""Machines side by side: which allocator is best where, as tables. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from freestone.analysis import digits
from freestone.analysis.across import ABSENT, Across, kinds
from freestone.analysis.across.there import ASPECTS, There
from freestone.analysis.across.votes import Group, Vote
from freestone.reports import quantities
from freestone.reports.across_said import NOBODY, counted, other_versions, sentences
from freestone.reports.grid import Grid, Mark, Piece

_BEST: Final = tuple(f"best in {aspect}" for aspect in ASPECTS)

_NO_RESULT: Final = "no result"
"""The column of the configurations that have none; only where there is one."""

_UNLIKE: Final = "not the same each time"

_MARKS: Final[Mapping[str, Mark]] = {"best": "better", "unlike": "same", "nobody": "same", "unknown": "worse"}


@dataclass(frozen=True)
class SideBySide:
    """A workload on several machines."""

    table: Grid
    """A row for each kind of machines, or for each machine where no two are of a kind."""
    sentences: Sequence[str]
    """What they have in common, and where the ranking changes."""
    kinds: Sequence[Grid]
    """The machines of each kind, one by one; none where ``table`` has them."""


def tables(found: Sequence[Across]) -> list[SideBySide]:
    """What several machines say of each workload; what all workloads together say comes first.

    Allocators that are other versions at some of them are told of once.
    """
    ordered = sorted(found, key=lambda each: not each.whole)
    versions = other_versions(ordered)
    return [
        _side_by_side(each, [*sentences(each), *(versions if number == 0 else [])])
        for number, each in enumerate(ordered)
    ]


def _side_by_side(each: Across, said: Sequence[str]) -> SideBySide:
    return SideBySide(_by_kind(each, "\n".join(said)), said, [_machines(each, group) for group in each.groups])


def _by_kind(each: Across, note: str) -> Grid:
    title = f"{each.workload} {_where_measured(each)}"
    if not each.groups:
        return _of_places(each, title, each.places, note)
    lacking = _lacking(each)
    rows = [
        [
            Piece(group.name),
            Piece(str(group.machines)),
            *(_votes(group, aspect) for aspect in ASPECTS),
            *([_without_of(group, lacking)] if lacking else []),
        ]
        for group in each.groups
    ]
    heads = ["kind", "machines", *_BEST, *([_NO_RESULT] if lacking else [])]
    return Grid(title, heads, rows, note, left=frozenset({0, 2, 3, 4}))


def _where_measured(each: Across) -> str:
    machines = "one machine" if each.machines == 1 and each.again else counted(each.machines, "machine")
    left_out = {place for apart in each.left_out for place in apart.places}
    if left_out:
        several = f", {machines}" if each.again else ""
        return f"on {len(each.places)} of {counted(len(each.places) + len(left_out), 'place')}{several}"
    return f"in {len(each.places)} results of {machines}" if each.again else f"on {machines}"


def _machines(each: Across, group: Group) -> Grid:
    made_of = kinds.described(group.places[0].kind)
    several = "" if len(group.places) == group.machines else f" in {len(group.places)} results"
    title = f"{group.name}: {counted(group.machines, 'machine')}{several}" + (f" ({made_of})" if made_of else "")
    return _of_places(each, title, group.places)


def _of_places(each: Across, title: str, places: Sequence[There], note: str = "") -> Grid:
    """A row for each."""
    lacking = _lacking(each)
    rows = [
        [
            Piece(there.place),
            *(_best(there, aspect) for aspect in ASPECTS),
            *([_without(lacking.get(there.place, []))] if lacking else []),
        ]
        for there in places
    ]
    return Grid(title, ["", *_BEST, *([_NO_RESULT] if lacking else [])], rows, note, left=frozenset({0, 1, 2, 3}))


def _best(there: There, aspect: str) -> Piece:
    why = there.unknown(aspect)
    if why is not None:
        return Piece(f"not measured ({why})", "worse")
    name = there.best.get(aspect)
    ratio = there.ratios.get(aspect, {}).get(name or "")
    if name is None or ratio is None:
        return Piece(NOBODY, "same")
    return Piece(f"{name} ×{quantities.ratio_number(ratio)} {quantities.interval(ratio)}", "better")


def _votes(group: Group, aspect: str) -> Piece:
    """Who is best on how many machines, and how far the ratios of those lie apart: theirs, and no common one."""
    votes = group.votes(aspect)
    return Piece("; ".join(map(_vote, votes)), _MARKS[votes[0].says.sort])


def _vote(vote: Vote) -> str:
    if vote.says.sort == "best":
        return f"{vote.says.word} on {vote.machines} ×{_reach(vote.ratios)}"
    if vote.says.sort == "unknown":
        return f"not measured on {vote.machines} ({vote.says.word})"
    return f"{NOBODY if vote.says.sort == 'nobody' else _UNLIKE} on {vote.machines}"


def _reach(ratios: Sequence[float]) -> str:
    ends = (min(ratios), max(ratios))
    least, most = (digits.number(value, digits.seen(value, 2), different=True) for value in ends)
    return least if least == most else f"{least} to {most}"


_Lacking = dict[str, list[tuple[str, str]]]
"""Place -> the configurations without a result there, each with what became of it."""


def _lacking(each: Across) -> _Lacking:
    found: _Lacking = {}
    for (name, status), where in each.without().items():
        for there, _ in where:
            found.setdefault(there.place, []).append((name, status))
    return found


def _without(lacking: Sequence[tuple[str, str]]) -> Piece:
    by_status: dict[str, list[str]] = {}
    for name, status in lacking:
        by_status.setdefault(status, []).append(name)
    said = "; ".join(f"{', '.join(names)} ({status})" for status, names in by_status.items())
    return Piece(said, "same" if set(by_status) <= {ABSENT} else "worse")


def _without_of(group: Group, lacking: _Lacking) -> Piece:
    """Who has no result on how many machines of a kind."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for there in group.places:
        for each in lacking.get(there.place, []):
            found.setdefault(each, {})[there.machine] = None
    said = "; ".join(f"{name} on {len(machines)} ({status})" for (name, status), machines in found.items())
    return Piece(said, "same" if {status for _, status in found} <= {ABSENT} else "worse")
