"""The best peer as one can know it: chosen by one half of the rounds, held against others in the other. Pure functions.

Whoever is lowest in a measurement is so in part by luck, and the more peers there are, the more luck: beside the
lowest of nine equal allocators every tenth looks slow. Chosen by rounds that it is not read in, the luck of the choice
is in no ratio. What remains favours the subject, where the choice was wrong; the lowest of all rounds favours the
peers: the truth lies between the two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from freestone.analysis import statistics
from freestone.analysis.statistics import Estimate

Rounds = Mapping[int, float]
"""Round -> figure, above 0, less is better."""

SHARED: Final = 0.3
"""The halves are not quite independent, since each chooses for the other: what is low in both is chosen by both. Of
equal peers the same one is chosen once in as many as there are, and lies then below the mean by that of the lowest of
so many: as covariance of the halves' means at most 0.3 of one's variance, at four or five peers. Leaving one round out
instead of half of them would make it more than one whole."""


def best_of_other_rounds(peers: Mapping[str, Rounds]) -> dict[int, float]:
    """Round -> the figure in it of the peer that has the lowest geometric mean over the other half of the rounds.

    The halves are every other round, so that what drifts is in both. A peer can be chosen for a round in which it has a
    figure, by the others in which it has one; equal peers by name. A round for which nobody can be chosen is left out.

    Args:
        peers: configuration -> its rounds.
    """
    numbers = sorted({number for rounds in peers.values() for number in rounds})
    halves = (numbers[::2], numbers[1::2])
    found: dict[int, float] = {}
    for mine, others in (halves, halves[::-1]):
        means = {name: mean for name, rounds in peers.items() if (mean := _mean(rounds, others)) is not None}
        ranked = sorted(means, key=lambda name: (means[name], name))
        for number in mine:
            chosen = next((name for name in ranked if peers[name].get(number, 0.0) > 0), None)
            if chosen is not None:
                found[number] = peers[chosen][number]
    return found


def held_out(own: Rounds, chosen: Rounds, step: float = 0.0) -> Estimate | None:
    """The logarithm of the ratio to whom the other rounds chose, paired within rounds.

    Its error knows what the halves share.
    """
    found = statistics.within_rounds(own, chosen, step)
    return None if found is None else replace(found, error=found.error * math.sqrt(1 + SHARED / 2))


def _mean(rounds: Rounds, numbers: Iterable[int]) -> float | None:
    """The mean logarithm over some rounds; None where there is none, or a figure without one."""
    values = [rounds[number] for number in numbers if number in rounds]
    if not values or not all(0 < value < math.inf for value in values):
        return None
    return math.fsum(math.log(value) for value in values) / len(values)
