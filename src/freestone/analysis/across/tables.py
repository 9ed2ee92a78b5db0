"""One workload on several machines: which allocator is best where, and where the ranking changes. Pure functions.

Machines stand side by side and are never pooled. Of each is said what its own summary says, or why that says nothing.
Side by side stands what measured the same: the same work, and of all workloads together the same ones; of an order it
is told which places are not among them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from freestone.analysis.across.beside import Work
from freestone.analysis.across.one_machine import together
from freestone.analysis.across.there import There
from freestone.analysis.across.turns import Turn, turns
from freestone.analysis.across.votes import Group, by_machine, groups
from freestone.analysis.one_experiment import names_apart


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
    """The same places by kind, the largest kind first; none where no two machines are of one kind."""
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

    def measured(self, aspect: str) -> list[There]:
        """The places that know who is best, be it nobody."""
        return [there for there in self.places if there.unknown(aspect) is None]

    def agreed(self, aspect: str) -> str | None:
        """Who is best at every place that knows; None where there is nobody, or not the same one."""
        names = {there.best.get(aspect) for there in self.measured(aspect)}
        return names.pop() if len(names) == 1 else None

    def without(self) -> dict[tuple[str, str], list[tuple[There, str]]]:
        """(configuration, what became of it) -> the places where it has no result, each with the reason."""
        names = dict.fromkeys(name for there in self.places for name in there.outcomes)
        found: dict[tuple[str, str], list[tuple[There, str]]] = {}
        for name in names:
            for there in self.places:
                outcome = there.outcomes.get(name)
                if outcome is None:
                    found.setdefault((name, ABSENT), []).append((there, ""))
                elif outcome.status != "ok":
                    found.setdefault((name, outcome.said), []).append((there, outcome.reason or ""))
        return found

    @property
    def machines(self) -> int:
        """How many machines the places are."""
        return len({there.machine for there in self.places})

    @property
    def again(self) -> list[list[str]]:
        """Places that are one machine, measured more than once."""
        return [[there.place for there in places] for places in by_machine(self.places) if len(places) > 1]


ABSENT: Final = "is not there"
"""What becomes of a configuration that others have and a place does not."""

Why = Callable[[Work, Work], str]
"""What keeps the second from standing beside the first, in the words of
:meth:`freestone.analysis.across.beside.Beside.why`."""


def across(
    results: Sequence[There],
    *,
    one_order: bool = False,
    why: Why = lambda one, other: "another measurement",
    absent: Sequence[LeftOut] = (),
) -> list[Across]:
    """Every workload that was measured more than once against the same baseline.

    Where no two have measured the same, the first stands alone, with what keeps the others from standing beside it.

    Args:
        results: of all machines, which have names unlike each other.
        one_order: whether they are of one folder: then workloads of one name are meant to be the same, wherever their
            programs lie.
        why: asked where they are not.
        absent: places of the order that there is nothing of, which no table has.
    """
    asked: dict[tuple[str, tuple[str, ...], str], list[There]] = {}
    for there in results:
        name = "" if there.whole else there.workload
        asked.setdefault((name, () if one_order else there.command, there.baseline), []).append(there)
    shown = [tables for places in asked.values() if len(places) > 1 for tables in _tables(places, why)]
    compared = sum(len(each.places) > 1 for each in shown)
    of_place: dict[str, list[There]] = {}
    for there in results if one_order else ():
        of_place.setdefault(there.place, []).append(there)
    return [
        replace(
            each,
            turns=turns(each.places, compared),
            groups=groups(each.places),
            left_out=[*each.left_out, *_elsewhere(each, of_place), *absent],
        )
        for each in shown
    ]


def _elsewhere(table: Across, of_place: Mapping[str, Sequence[There]]) -> list[LeftOut]:
    """Places of an order that have nothing that could have been held against a table's.

    Args:
        of_place: what each place of the order says.
    """
    told = {*(there.place for there in table.places), *(name for each in table.left_out for name in each.places)}
    found: dict[str, list[str]] = {}
    for place, results in of_place.items():
        if place not in told:
            mine = [each for each in results if each.whole == table.whole]
            other = next((each.baseline for each in mine if table.whole or each.workload == table.workload), None)
            lacks = "too few workloads that count together" if table.whole else "no such workload"
            found.setdefault(lacks if other is None else f"held against {other}", []).append(place)
    return [LeftOut(places, reason) for reason, places in found.items()]


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
