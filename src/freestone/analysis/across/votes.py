"""What the machines of a kind say of who is best, counted: each counts once, however often it was measured. Pure."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from freestone.analysis.across import kinds
from freestone.analysis.across.there import There


class Says(NamedTuple):
    """What a machine says of who is best in an aspect."""

    sort: Literal["best", "unlike", "nobody", "unknown"]
    """That somebody is; one thing the one time it was measured and another the other; that nobody is really better than
    the baseline; that nobody knows."""
    word: str = ""
    """Who it is, or why nobody knows."""


_SORTS: Final = ("best", "unlike", "nobody", "unknown")


@dataclass(frozen=True)
class Vote:
    """What several machines of a kind say alike."""

    says: Says
    machines: int
    ratios: Sequence[float]
    """Of who is best, on each of those that say so."""


@dataclass(frozen=True)
class Group:
    """Machines of one kind."""

    name: str
    places: Sequence[There]

    @property
    def machines(self) -> int:
        """How many they are: one that was measured more than once counts once."""
        return len({there.machine for there in self.places})

    def of(self, places: Container[str]) -> int:
        """How many of its machines are among some places."""
        return len({there.machine for there in self.places if there.place in places})

    def votes(self, aspect: str) -> list[Vote]:
        """Who is best on how many of its machines; what most of them say comes first."""
        found: dict[Says, list[list[There]]] = {}
        for mine in by_machine(self.places):
            found.setdefault(_of_machine(mine, aspect), []).append(mine)
        made = [
            Vote(
                says,
                len(machines),
                [
                    there.ratios[aspect][says.word].value
                    for mine in machines
                    for there in mine
                    if _says(there, aspect) == says
                ]
                if says.sort == "best"
                else [],
            )
            for says, machines in found.items()
        ]
        return sorted(made, key=lambda each: (-each.machines, _SORTS.index(each.says.sort), each.says.word))


def _says(there: There, aspect: str) -> Says:
    why = there.unknown(aspect)
    if why is not None:
        return Says("unknown", why)
    return Says("best", there.best[aspect]) if aspect in there.best else Says("nobody")


def _of_machine(places: Sequence[There], aspect: str) -> Says:
    """What one machine says, however often it was measured."""
    said = dict.fromkeys(_says(there, aspect) for there in places)
    known = [each for each in said if each.sort != "unknown"] or list(said)[:1]
    return known[0] if len(known) == 1 else Says("unlike")


def by_machine(places: Sequence[There]) -> list[list[There]]:
    """Results of one machine together."""
    found: dict[str, list[There]] = {}
    for there in places:
        found.setdefault(there.machine, []).append(there)
    return list(found.values())


def groups(places: Sequence[There]) -> list[Group]:
    """Machines by kind, the largest kind first; none where no two machines are of one kind."""
    by_kind: dict[kinds.Kind, list[There]] = {}
    for there in places:
        by_kind.setdefault(there.kind, []).append(there)
    names = kinds.names(by_kind)
    found = [Group(names[kind], mine) for kind, mine in by_kind.items()]
    if all(group.machines == 1 for group in found):
        return []
    return sorted(found, key=lambda group: (-group.machines, group.name))
