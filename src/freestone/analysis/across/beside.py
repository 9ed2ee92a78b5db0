"""Which results of a workload may stand side by side, as they are read one after the other. Pure.

Whoever measures at several places has typed one line, and each place has carried it out with what lies there: another
script of the same name, another input, another environment. Only what measured the same stands in one table.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from freestone.analysis.one_experiment import stands_apart
from freestone.analysis.sides import Side
from freestone.records.schema import Workload

_MOST_KEPT: Final = 8
"""So many results that measured something else are kept to hold others against; each has all of its records."""


class Work(NamedTuple):
    """What somebody measured of a workload: equal for results that may stand side by side."""

    workload: str
    command: tuple[str, ...]
    """Empty where workloads of one name are meant to be the same, wherever their programs lie."""
    number: int


class Beside:
    """Sorts results by what they measured."""

    def __init__(self, *, one_order: bool) -> None:
        """Args: one_order: whether workloads of one name are meant to be the same, as in the results of one order."""
        self._one_order = one_order
        self._kept: dict[tuple[str, tuple[str, ...]], list[Side]] = {}
        self._others: dict[Work, str] = {}

    def sort(self, side: Side) -> dict[str, Work]:
        """What a place has measured of each workload."""
        return {each.name: self._sorted(_of(side, each), each) for each in side.experiment.workloads}

    def why(self, one: Work, other: Work) -> str:
        """What keeps a result from standing beside another one of the same workload, in words.

        Args:
            one: what the other is held against.
            other: the result that stands apart.
        """
        told = self._others.get(other) or self._others.get(one)
        if told is not None:
            return told
        kept = self._kept[other[:2]]
        return stands_apart(kept[one.number], kept[other.number]) or "another measurement"

    def _sorted(self, mine: Side, workload: Workload) -> Work:
        asked = (workload.name, () if self._one_order else tuple(workload.command))
        kept = self._kept.setdefault(asked, [])
        told = None
        for number, each in enumerate(kept):
            found = stands_apart(each, mine)
            if found is None:
                return Work(*asked, number)
            told = told or found
        if len(kept) < _MOST_KEPT:
            kept.append(mine)
            return Work(*asked, len(kept) - 1)
        work = Work(*asked, _MOST_KEPT + len(self._others))
        self._others[work] = told or ""
        return work


def _of(side: Side, workload: Workload) -> Side:
    """One workload of a place, alone: what is looked at grows with what there is, and not with its square."""
    records = [record for record in side.records if record.workload == workload.name]
    return Side(side.experiment.model_copy(update={"workloads": [workload]}), records)
