"""Which results of a workload may stand side by side. Pure.

Whoever measures at several places has typed one line, and each place has carried it out with what lies there: another
script of the same name, another input, another environment. Only what measured the same stands in one table.

Results are taken one after the other, and sorted when all are there: which is read first decides nothing. Each has to
agree with all that it stands beside. One whose runs failed tells little of its work and agrees with nearly everybody:
so those that tell most come first, and it vouches for nobody.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Final, NamedTuple

from freestone.analysis.one_experiment import Alone, alone, stands_apart
from freestone.analysis.sides import Side

_MOST_WORKS: Final = 32
"""So many works of one name are held against others; in more nobody finds anything."""

_MOST_KEPT: Final = 16
"""Of one work, so many results that are not alike are held against others: those that tell most."""


class Work(NamedTuple):
    """What somebody measured of a workload: equal for results that may stand side by side."""

    workload: str
    command: tuple[str, ...]
    """Empty where workloads of one name are meant to be the same, wherever their programs lie."""
    number: int


class _Taken(NamedTuple):
    """A result, and what is equal for those that are alike but for their machine and their build of the program."""

    like: str
    result: Alone


class _Members:
    """Results that agree with each other."""

    def __init__(self) -> None:
        self.count = 0
        self.kept: dict[str, Alone] = {}
        """One of all that are alike."""
        self._of_machine: dict[str, dict[frozenset[str], Alone]] = {}

    def agree_with(self, result: Alone) -> bool:
        """Whether all do, but for the builds that one machine has of the program."""
        return all(stands_apart(each, result, any_build=True) is None for each in self.kept.values())

    def have_its_build(self, result: Alone) -> bool:
        """Whether those of its machine have none but its build of the program, as far as that is known."""
        return all(stands_apart(each, result) is None for each in self._of_machine.get(result.machine, {}).values())

    def add(self, taken: _Taken) -> None:
        self.count += 1
        if len(self.kept) < _MOST_KEPT:
            self.kept.setdefault(taken.like, taken.result)
        builds = self._of_machine.setdefault(taken.result.machine, {})
        builds.setdefault(taken.result.evidence.builds, taken.result)

    def why(self, others: _Members) -> str | None:
        """What keeps the others from standing beside these."""
        pairs = [
            *product(self.kept.values(), others.kept.values()),
            *(
                pair
                for machine, builds in self._of_machine.items()
                for pair in product(builds.values(), others._of_machine.get(machine, {}).values())
            ),
        ]
        return next((told for one, other in pairs if (told := stands_apart(one, other)) is not None), None)


_Asked = tuple[str, tuple[str, ...]]
"""A workload's name and command, as :class:`Work` has them."""


class Beside:
    """Sorts results by what they measured."""

    def __init__(self, *, one_order: bool) -> None:
        """Args: one_order: whether workloads of one name are meant to be the same, as in the results of one order."""
        self._one_order = one_order
        self._taken: dict[_Asked, list[_Taken]] = {}
        self._alike: dict[str, Alone] = {}
        self._members: dict[Work, _Members] = {}

    def take(self, side: Side) -> dict[str, Work]:
        """Take in a result: workload -> what stands for it alone, until all of them are sorted."""
        found = {}
        for workload in side.experiment.workloads:
            asked = (workload.name, () if self._one_order else tuple(workload.command))
            taken = self._taken.setdefault(asked, [])
            taken.append(self._small(alone(side, workload)))
            found[workload.name] = Work(*asked, len(taken) - 1)
        return found

    def works(self) -> dict[Work, Work]:
        """What stands for each result alone -> what it has measured, in the order in which they were taken."""
        self._members = {}
        found: dict[Work, Work] = {}
        for asked, taken in self._taken.items():
            sorted_into = _sorted(taken)
            numbers: dict[_Members, int] = {}
            for at, members in enumerate(sorted_into):
                number = numbers.setdefault(members, len(numbers))
                found[Work(*asked, at)] = Work(*asked, number)
                self._members[Work(*asked, number)] = members
        return found

    def why(self, one: Work, other: Work) -> str:
        """What keeps a result from standing beside another one of the same workload, in words.

        Args:
            one: what the other is held against.
            other: the work of the result that stands apart.
        """
        return self._members[one].why(self._members[other]) or "another measurement"

    def _small(self, result: Alone) -> _Taken:
        """A result that shares what it has with those that are alike: a thousand machines take no more than a few."""
        evidence = result.evidence
        like = hashlib.sha256(
            "\n".join(
                (
                    result.head.model_dump_json(),
                    repr(sorted((path, sorted(held)) for path, held in evidence.contents.items())),
                    repr(sorted(evidence.said.items())),
                    repr(result.cpus),
                )
            ).encode(errors="surrogateescape")
        ).hexdigest()
        first = self._alike.setdefault(like, result)
        shared = replace(evidence, contents=first.evidence.contents, said=first.evidence.said)
        return _Taken(like, replace(result, head=first.head, evidence=shared))


def _sorted(taken: Sequence[_Taken]) -> list[_Members]:
    """Those that each result stands beside, itself among them; whatever the order in which they were taken."""
    alike: dict[str, list[int]] = {}
    for at, each in enumerate(taken):
        alike.setdefault(each.like, []).append(at)
    works: list[_Members] = []
    found: dict[int, _Members] = {}

    def first_of_all(like: str) -> tuple[int, int, str]:
        return -_telling(taken[alike[like][0]].result), -len(alike[like]), like

    for like in sorted(alike, key=first_of_all):
        results = sorted(alike[like], key=lambda at: _own(taken[at].result))
        agreeing = [each for each in works[:_MOST_WORKS] if each.agree_with(taken[results[0]].result)]
        for at in results:
            fitting = [each for each in agreeing if each.have_its_build(taken[at].result)]
            if not fitting:
                fitting = [_Members()]
                works += fitting
                agreeing += fitting
            found[at] = max(fitting, key=lambda each: each.count)  # where several would do, the most of them
            found[at].add(taken[at])
    return [found[at] for at in range(len(taken))]


def _telling(result: Alone) -> int:
    """How much is known of the work that it did."""
    return len(result.evidence.contents) + len(result.evidence.said)


def _own(result: Alone) -> tuple[bool, str, list[str]]:
    """Of results that are alike: first those whose build is known."""
    builds = sorted(result.evidence.builds)
    return not builds, result.machine, builds
