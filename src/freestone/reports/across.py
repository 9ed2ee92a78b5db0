"""Machines side by side: which allocator is best where, as tables and as sentences. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from freestone.analysis import kinds
from freestone.analysis.across import NOBODY, Across, Group, Turn
from freestone.analysis.headline import ended
from freestone.analysis.one_machine import ASPECTS, There
from freestone.reports import quantities
from freestone.reports.grid import Grid, Piece

_NOBODY: Final = "–"

MOST_NAMED: Final = 8
"""So many machines are named in a sentence; of more, the number is."""

_PLACE: Final = "place"

_BEST: Final = tuple(f"best in {aspect}" for aspect in ASPECTS)


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
    versions = _other_versions(ordered)
    return [
        _side_by_side(each, [*sentences(each), *(versions if number == 0 else [])])
        for number, each in enumerate(ordered)
    ]


def _side_by_side(each: Across, said: Sequence[str]) -> SideBySide:
    return SideBySide(_by_kind(each, "\n".join(said)), said, [_machines(group) for group in each.groups])


def _by_kind(each: Across, note: str) -> Grid:
    title = f"{each.workload} {_where_measured(each)}"
    if not each.groups:
        rows = [_row(there) for there in each.places]
        return Grid(title, ["", *_BEST], rows, note, left=frozenset({0, 1, 2}))
    rows = [
        [Piece(group.name), Piece(str(len(group.places))), *(_votes(group, aspect) for aspect in ASPECTS)]
        for group in each.groups
    ]
    return Grid(title, ["kind", "machines", *_BEST], rows, note, left=frozenset({0, 2, 3}))


def _where_measured(each: Across) -> str:
    if not each.again:
        return f"on {_count(each.machines, 'machine')}"
    return (
        f"in {len(each.places)} results of {'one machine' if each.machines == 1 else _count(each.machines, 'machine')}"
    )


def _machines(group: Group) -> Grid:
    rows = [_row(there) for there in group.places]
    made_of = kinds.described(group.places[0].kind)
    return Grid(
        f"{group.name}: {_count(len(rows), 'machine')}" + (f" ({made_of})" if made_of else ""),
        ["", *_BEST],
        rows,
        left=frozenset({0, 1, 2}),
    )


def _row(there: There) -> list[Piece]:
    return [Piece(there.place), *(_best(there, aspect) for aspect in ASPECTS)]


def _best(there: There, aspect: str) -> Piece:
    name = there.best.get(aspect)
    ratio = there.ratios.get(aspect, {}).get(name or "")
    if name is None or ratio is None:
        return Piece(_NOBODY, "same")
    return Piece(f"{name} ×{quantities.ratio_number(ratio)} {quantities.interval(ratio)}", "better")


def _votes(group: Group, aspect: str) -> Piece:
    """Who is best on how many machines, and how far the ratios of those lie apart: theirs, and no common one."""
    said = []
    for name, count in group.best(aspect):
        if name == NOBODY:
            said.append(f"{_NOBODY} on {count}")
            continue
        ratios = [there.ratios[aspect][name].value for there in group.places if there.best.get(aspect) == name]
        said.append(f"{name} on {count} ×{_reach(ratios)}")
    return Piece("; ".join(said), "better" if group.best(aspect)[0][0] != NOBODY else "same")


def _reach(ratios: Sequence[float]) -> str:
    least, most = f"{min(ratios):.2f}", f"{max(ratios):.2f}"
    return least if least == most else f"{least} to {most}"


def sentences(each: Across) -> list[str]:
    """What the places have in common, and where the ranking changes."""
    said, several = [], len(each.places) > 1
    for aspect in ASPECTS:
        name = each.agreed(aspect)
        if name is not None and several:
            said.append(f"{name} is best in {aspect} everywhere.")
    for turn in each.turns:
        said.append(
            f"The ranking in {turn.aspect} changes: {turn.configuration} takes less than {each.baseline} on "
            f"{_where(each, turn, turn.less)}, and more on {_where(each, turn, turn.more)}."
        )
    if not each.turns and several:
        said.append(f"No ranking is seen to change from one {each.noun} to another.")
    said += [f"{_listed(names, each.noun)} are one machine, measured more than once." for names in each.again]
    said += [f"Left out: {_listed(apart.places, each.noun)}: {apart.why}." for apart in each.left_out]
    if each.lacking:
        said.append(
            f"Without {_listed(each.lacking, 'workload')}: no result of {each.baseline} to hold others against."
        )
    said += _other_builds(each)
    if each.groups:
        said.append(
            f"A row counts what its machines say, each by its own rounds; ×: the least and the largest of their ratios "
            f"to {each.baseline}; {_NOBODY}: nobody is really better. Never pooled."
        )
    else:
        said.append(
            f"×: ratio to {each.baseline} on that {each.noun}; {_NOBODY}: nobody is really better. Never pooled."
        )
    return [ended(sentence) for sentence in said]


def _other_builds(each: Across) -> list[str]:
    """Where the program is not the build that most have: then what differs may be the program's."""
    by_build: dict[str, list[str]] = {}
    for there in each.places:
        if there.build is not None:
            by_build.setdefault(there.build, []).append(there.place)
    usual, *others = sorted(by_build.values(), key=len, reverse=True) or [[]]
    where = [name for names in others for name in names]
    if not where:
        return []
    builds = "another build" if len(others) == 1 else f"{len(others)} other builds"
    return [f"The program is {builds} on {_listed(where, each.noun)} than on {_listed(usual, each.noun)}."]


def _other_versions(found: Sequence[Across]) -> list[str]:
    """Which allocators are not of one version at all places, a sentence each."""
    by_name: dict[str, dict[str, dict[str, None]]] = {}
    for each in found:
        for there in each.places:
            for name, version in there.versions.items():
                by_name.setdefault(name, {}).setdefault(version, {})[there.place] = None
    return [
        ended(f"{name} is {', '.join(f'{version} on {_listed(list(on), _PLACE)}' for version, on in versions.items())}")
        for name, versions in by_name.items()
        if len(versions) > 1
    ]


def _where(each: Across, turn: Turn, places: Sequence[str]) -> str:
    """Machines by name, or where they are many, how many of each kind."""
    if not each.groups:
        return _listed(places, each.noun)
    among = set(places)
    return _listed(
        [
            f"{count} of {len(group.places)} {group.name}"
            for group in each.groups
            if (count := sum(there.place in among for there in group.places))
        ],
        "kind",
    )


def _listed(names: Sequence[str], what: str) -> str:
    if len(names) == 1:
        return names[0]
    if len(names) <= MOST_NAMED:
        return f"{', '.join(names[:-1])} and {names[-1]}"
    left = len(names) - MOST_NAMED
    return f"{', '.join(names[:MOST_NAMED])} and {left} more {what}{'' if left == 1 else 's'}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
