"""One workload on several machines: which allocator is best where, and where the ranking changes. Pure functions.

Machines stand side by side and are never pooled. Of each is said what its own summary says. A ranking has changed where
a configuration really takes less than the baseline on one machine and really more on another, by intervals that hold
for all machines, configurations and workloads at once: among a thousand machines chance alone would turn some.

Side by side stands what measured the same: the same work, and of all workloads together the same ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from freestone.analysis import family, kinds, statistics
from freestone.analysis.beside import Work
from freestone.analysis.one_experiment import names_apart
from freestone.analysis.one_machine import ASPECTS, There, together
from freestone.analysis.statistics import Estimate

NOBODY: Final = ""
"""Stands for no configuration where it is counted who is best: nobody is really better than the baseline."""

_WHOLE: Final = 1.0
"""Which part of the 5 % the rankings have: it is all that they are asked."""


@dataclass(frozen=True)
class Turn:
    """A configuration that takes less at some places and more at others."""

    aspect: str
    configuration: str
    less: Sequence[str]
    more: Sequence[str]


@dataclass(frozen=True)
class Group:
    """Machines of one kind."""

    name: str
    places: Sequence[There]

    def best(self, aspect: str) -> list[tuple[str, int]]:
        """Who is best, or :data:`NOBODY`, on how many of them; those that most say first, then by name."""
        counted = Counter(there.best.get(aspect, NOBODY) for there in self.places)
        return sorted(counted.items(), key=lambda each: (-each[1], each[0] == NOBODY, each[0]))


@dataclass(frozen=True)
class LeftOut:
    """Places that were asked for the same and do not stand beside the others."""

    places: Sequence[str]
    why: str


@dataclass(frozen=True)
class Across:
    """A workload at several places."""

    workload: str
    baseline: str
    places: Sequence[There]
    turns: Sequence[Turn]
    groups: Sequence[Group]
    """The same places by kind, the largest kind first; none where no two are of one kind, or some are one machine."""
    whole: bool
    """Whether it is all workloads together."""
    left_out: Sequence[LeftOut] = ()
    """Who measured something else, and what."""
    lacking: Sequence[str] = ()
    """Of all workloads together: those that somebody has and that are not among these."""

    @property
    def noun(self) -> str:
        """What the places are: machines, or where some are one and the same, no more than places."""
        return "machine" if self.machines == len(self.places) else "place"

    def agreed(self, aspect: str) -> str | None:
        """Who is best at every place; None where there is nobody, or not the same one."""
        names = {there.best.get(aspect) for there in self.places}
        return names.pop() if len(names) == 1 else None

    @property
    def machines(self) -> int:
        """How many machines the places are."""
        return len({there.machine for there in self.places})

    @property
    def again(self) -> list[list[str]]:
        """Places that are one machine, measured more than once."""
        return [[there.place for there in places] for places in _by_machine(self.places) if len(places) > 1]


Why = Callable[[Work, Work], str]
"""What keeps the second from standing beside the first, as :meth:`freestone.analysis.beside.Beside.why` says it."""


def across(
    results: Sequence[There], *, one_order: bool = False, why: Why = lambda one, other: "another measurement"
) -> list[Across]:
    """Every workload that several machines have measured against the same baseline.

    Where no two have measured the same, the first stands alone, with what keeps the others from standing beside it.

    Args:
        results: of all machines, which have names unlike each other.
        one_order: whether they are of one folder: then they stand side by side also where they are of one machine,
            and workloads of one name are meant to be the same ones, wherever their programs lie.
        why: asked where they are not.
    """
    if not one_order and len({there.machine for there in results}) < 2:
        return []
    asked: dict[tuple[str, tuple[str, ...], str], list[There]] = {}
    for there in results:
        name = "" if there.whole else there.workload
        asked.setdefault((name, () if one_order else there.command, there.baseline), []).append(there)
    shown = [tables for places in asked.values() if len(places) > 1 for tables in _tables(places, why)]
    compared = sum(len(each.places) > 1 for each in shown)
    return [replace(each, turns=_turns(each.places, compared), groups=_groups(each.places)) for each in shown]


def _tables(asked: Sequence[There], why: Why) -> list[Across]:
    """Those that were asked for the same by what they measured; no turns and groups yet."""
    by_work: dict[tuple[Work, ...], list[There]] = {}
    for there in asked:
        by_work.setdefault(there.works, []).append(there)
    several = [places for places in by_work.values() if len(places) > 1] or list(by_work.values())[:1]
    names = {name for there in asked for name in (*there.lacking, *(each.workload for each in there.works))}
    return [_table(places, list(by_work.values()), sorted(names), why) for places in several]


def _table(places: list[There], by_work: Sequence[list[There]], names: Sequence[str], why: Why) -> Across:
    """Args: names: of all workloads that anybody has."""
    first = places[0]
    mine = {each.workload for each in first.works}
    return Across(
        together(len(mine), len(names)) if first.whole and mine else first.workload,
        first.baseline,
        places,
        turns=(),
        groups=(),
        whole=first.whole,
        left_out=[
            LeftOut([there.place for there in others], _told_apart(first.works, others[0].works, why))
            for others in by_work
            if others is not places
        ],
        lacking=[name for name in names if name not in mine] if first.whole else [],
    )


def _told_apart(mine: Sequence[Work], theirs: Sequence[Work], why: Why) -> str:
    """What keeps a result from standing beside another one that was asked for the same."""
    one, other = ({each.workload: each for each in works} for works in (mine, theirs))
    if one.keys() == other.keys():
        name = next(name for name in one if one[name] != other[name])
        told = why(one[name], other[name])
        return told if len(one) == 1 else f"{name}: {told}"
    return f"other workloads, {names_apart(list(one), list(other))}"


def _by_machine(places: Sequence[There]) -> list[list[There]]:
    found: dict[str, list[There]] = {}
    for there in places:
        found.setdefault(there.machine, []).append(there)
    return list(found.values())


def _groups(places: Sequence[There]) -> list[Group]:
    if len(_by_machine(places)) < len(places):
        return []  # a machine that stands there twice would count twice
    by_kind: dict[kinds.Kind, list[There]] = {}
    for there in places:
        by_kind.setdefault(there.kind, []).append(there)
    if len(by_kind) == len(places):
        return []
    names = kinds.names(by_kind)
    return sorted(
        (Group(names[kind], mine) for kind, mine in by_kind.items()), key=lambda group: (-len(group.places), group.name)
    )


def _turns(places: Sequence[There], tables: int) -> list[Turn]:
    """Args: tables: how many workloads are looked at beside this one, itself included."""
    names = dict.fromkeys(name for there in places for found in there.estimates.values() for name in found)
    sure = family.confidence(_WHOLE, tables * len(ASPECTS) * len(names) * len(places))
    turns = []
    for aspect in ASPECTS:
        for name in names:
            told = [(there.place, found) for there in places if (found := there.estimates[aspect].get(name))]
            less = [place for place, each in told if _is_less(each, sure)]
            more = [place for place, each in told if _is_more(each, sure)]
            if less and more:
                turns.append(Turn(aspect, name, less, more))
    return turns


def _is_less(estimate: Estimate, sure: float) -> bool:
    # What is so far out is asked for only where it can matter.
    return estimate.middle < 0 and statistics.interval(estimate, sure).is_below_one


def _is_more(estimate: Estimate, sure: float) -> bool:
    held = statistics.interval(estimate, sure) if estimate.middle > 0 else None
    return held is not None and held.known and held.low > 1
