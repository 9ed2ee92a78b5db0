"""What a handful of values says of the median they were drawn from. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

CONFIDENCE = 0.95


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """A 95 % interval of the median: two of the values, between which it lies whatever they are distributed like.

    The median lies below the k-th smallest of n values only if fewer than k of n fair coins show heads; so k is the
    largest for which that, on either side, happens at most once in forty. Fewer than six values have no such k: None.
    Source: W. R. Thompson, "On confidence ranges for the median and other expectation distributions", Annals of
    Mathematical Statistics 7, 1936.
    """
    ordered = sorted(values)
    count = len(ordered)
    rank, fewer = 0, 0  # of the 2 ** count ways in which the coins fall, those with fewer heads than the rank
    while 2 * (fewer + math.comb(count, rank)) <= (1 - CONFIDENCE) * 2**count:
        fewer += math.comb(count, rank)
        rank += 1
    return (ordered[rank - 1], ordered[count - rank]) if rank > 0 else None
