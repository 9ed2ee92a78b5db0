"""What each configuration took in each round, packed: of a thousand machines all rounds are held at once. Pure."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from typing import Final

from freestone.analysis import statistics
from freestone.analysis.statistics import Estimate

_ABSENT: Final = math.nan


class PackedRounds:
    """One quantity of a workload on a machine."""

    def __init__(self, took: Mapping[str, Mapping[int, float]], step: float = 0.0) -> None:
        """Pack what was taken.

        Args:
            took: configuration -> round -> value.
            step: as in :func:`freestone.analysis.statistics.paired`.
        """
        rounds = sorted(set().union(*took.values()))
        self._step = step
        self._values = {
            name: array("d", (found.get(number, _ABSENT) for number in rounds)) for name, found in took.items() if found
        }

    @property
    def configurations(self) -> Iterable[str]:
        """Who has a round at all."""
        return self._values

    def ratio(self, one: str, other: str) -> Estimate | None:
        """The logarithm of the ratio of one configuration to another, over the rounds that both have.

        Returns:
            None where they share no round, or a value of a shared one is not a positive number.
        """
        if one not in self._values or other not in self._values:
            return None
        shared = [
            (mine, theirs)
            for mine, theirs in zip(self._values[one], self._values[other], strict=True)
            if not (math.isnan(mine) or math.isnan(theirs))
        ]
        return statistics.paired([mine for mine, _ in shared], [theirs for _, theirs in shared], self._step)
