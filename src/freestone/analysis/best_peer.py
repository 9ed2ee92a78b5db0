"""The best peer as one can know it: chosen by some rounds, held against the subject in another. Pure functions.

Whoever is lowest in a measurement is so in part by luck, and the more peers there are, the more luck: beside the
lowest of nine equal allocators every tenth looks slow. Chosen by all other rounds and read in the round left out, the
luck of the choice is in no ratio. What remains favours the subject, where the choice was wrong; the lowest of all
rounds favours the peers: the truth lies between the two.
"""

from __future__ import annotations

from collections.abc import Mapping

from freestone.analysis import statistics

Rounds = Mapping[int, float]
"""Round -> figure, above 0, less is better."""


def foreseen(peers: Mapping[str, Rounds]) -> dict[int, float]:
    """Round -> the figure in it of the peer that has the lowest geometric mean over all other rounds.

    A peer can be chosen for a round in which it has a figure, by the others in which it has one; equal peers by name. A
    round for which nobody can be chosen is left out.

    Args:
        peers: configuration -> its rounds.
    """
    found = {}
    for held_out in sorted({number for rounds in peers.values() for number in rounds}):
        means = {
            name: statistics.geometric_mean(others)
            for name, rounds in peers.items()
            if rounds.get(held_out, 0.0) > 0
            and (others := [value for number, value in rounds.items() if number != held_out])
            and min(others) > 0
        }
        if means:
            found[held_out] = peers[min(means, key=lambda name: (means[name], name))][held_out]
    return found
