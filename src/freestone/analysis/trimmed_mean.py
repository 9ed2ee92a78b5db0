"""Trimmed means of logarithms, and Student's interval about a sum of them at any confidence. Pure functions.

Used where many questions are asked at once, so that each needs an interval of far more than 95 %, which a bootstrap of
ten rounds cannot give. A fifth of the values is left out at either end (from five values on): on a shared machine one
run in ten is disturbed, and one disturbed run must not hide what the others agree about. The standard error is that of
K. K. Yuen, "The two-sample trimmed t for unequal population variances", Biometrika 61, 1974; degrees of freedom of a
sum are Welch's and Satterthwaite's. ``tests/experiments/test_trimmed.py`` measures the coverage.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from freestone.analysis.statistics import FEWEST_PAIRS, Interval, exponential

TRIM: Final = 0.2
"""The share left out at either end."""


@dataclass(frozen=True)
class Estimate:
    """The middle of some logarithms: the trimmed mean, its standard error, the degrees of freedom of that."""

    middle: float
    error: float
    freedom: float
    count: int


def estimate(logs: Sequence[float]) -> Estimate:
    """What values say about their middle; with fewer than four the error is infinite.

    Raises:
        ValueError: there are no values.
    """
    if not logs:
        raise ValueError("no values have no middle")
    ordered = sorted(logs)
    count, cut = len(ordered), int(TRIM * len(ordered))
    kept = ordered[cut : count - cut]
    middle = math.fsum(kept) / len(kept)
    if count < FEWEST_PAIRS:
        return Estimate(middle, math.inf, 1.0, count)
    # Winsorized: what is trimmed counts as the last value that is kept.
    drawn = [kept[0]] * cut + kept + [kept[-1]] * cut
    centre = math.fsum(drawn) / count
    squares = math.fsum((value - centre) ** 2 for value in drawn)
    freedom = len(kept) - 1
    return Estimate(middle, math.sqrt(squares / (len(kept) * freedom)), float(freedom), count)


def weighted(parts: Sequence[tuple[float, Estimate]]) -> Estimate:
    """The sum of independent estimates, each times its weight.

    Raises:
        ValueError: there are none.
    """
    if not parts:
        raise ValueError("no estimates have no sum")
    middle = math.fsum(weight * part.middle for weight, part in parts)
    variances = [(weight * part.error) ** 2 for weight, part in parts]
    variance = math.fsum(variances)
    count = min(part.count for _, part in parts)
    if not 0 < variance < math.inf:
        return Estimate(middle, math.sqrt(variance), math.fsum(part.freedom for _, part in parts), count)
    # Relative to the sum: the squares of small variances would vanish.
    shares = [each / variance for each in variances]
    freedom = 1 / math.fsum(share**2 / part.freedom for share, (_, part) in zip(shares, parts, strict=True))
    return Estimate(middle, math.sqrt(variance), freedom, count)


def interval(of: Estimate, confidence: float) -> Interval:
    """The ratio whose logarithm was estimated, with its two-sided interval.

    Args:
        confidence: above 0, below 1.
    """
    value = exponential(of.middle)
    if math.isinf(of.error):
        return Interval(value, 0.0, math.inf, of.count)
    if of.error == 0:
        return Interval(value, value, value, of.count)
    from scipy.special import stdtrit  # Student's t, inverted; late: it takes longer to load than everything else here

    half = float(stdtrit(of.freedom, (1 + confidence) / 2)) * of.error
    return Interval(value, exponential(of.middle - half), exponential(of.middle + half), of.count)
