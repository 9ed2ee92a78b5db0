"""What a handful of paired measurements says, and no more. Pure functions.

Two configurations are compared by the logarithms of their ratios within rounds. The figure is the geometric mean of
the ratios; its interval is the *symmetric bootstrap-t* of P. Hall ("On symmetric bootstrap confidence intervals",
Journal of the Royal Statistical Society B 50, 1988): rounds are drawn with replacement, the mean of each draw is
divided by that draw's own standard error, and the interval is the mean plus or minus the 95th percentile of the sizes
of these quotients times the standard error. The plain percentile bootstrap holds the truth 84 times in 100 at five
rounds where it claims 95, because draws from five values have too small a spread; the quotient carries that
uncertainty along. `tests/analysis/test_statistics.py` measures the coverage.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

CONFIDENCE: Final = 0.95
RESAMPLES: Final = 4000
FEWEST_PAIRS: Final = 4
"""Below this the bootstrap-t has no finite interval: with three pairs one draw in nine holds a single value thrice."""

WIDEST: Final = 2.0
"""The interval is at most this many times Student's. One disturbed round among many equal ones (a count of faults, say)
gives draws without it, which have next to no spread and would make the interval as good as endless."""


@dataclass(frozen=True)
class Interval:
    """A ratio with its 95 % interval; ``low`` is 0 and ``high`` infinite where the pairs are too few to tell."""

    value: float
    low: float
    high: float
    pairs: int

    @property
    def known(self) -> bool:
        """Whether there were enough pairs for an interval."""
        return self.high < math.inf

    @property
    def excludes_one(self) -> bool:
        """Whether 'no change' lies outside the interval."""
        return self.low > 1 or self.high < 1


def paired_ratio(one: Sequence[float], other: Sequence[float], *, seed: int = 0) -> Interval | None:
    """The ratio ``one / other``, paired: ``one[i]`` and ``other[i]`` were measured in the same round.

    Args:
        one: values of the configuration in question, one per round.
        other: values it is held against, same length.
        seed: of the draws. The same values and seed give the same interval, whatever the order of the rounds.

    Returns:
        None where a ratio has no meaning: no pairs at all, or a value that is not a positive finite number.

    Raises:
        ValueError: the lengths differ.
    """
    if len(one) != len(other):
        raise ValueError(f"pairs need equal lengths, not {len(one)} and {len(other)}")
    if not one or not all(0 < value < math.inf for value in (*one, *other)):
        return None
    # Sorted, so that the order of rounds has no influence.
    logs = np.sort(np.log(np.asarray(one, dtype=float)) - np.log(np.asarray(other, dtype=float)))
    middle = _mirrored_mean(logs)
    half = _half_width(logs, seed)
    if math.isinf(half):
        return Interval(exponential(middle), 0.0, math.inf, len(logs))
    return Interval(exponential(middle), exponential(middle - half), exponential(middle + half), len(logs))


def is_different(ratio: Interval, noise: Interval | None) -> bool:
    """Whether a ratio may be called a difference.

    Two conditions, both needed: the interval leaves out 1, and the ratio lies outside the *noise floor*, the range that
    the A/A comparison (the baseline against itself in the same rounds) spans together with 1, taken in both directions.
    Without a known A/A interval nothing is called different.
    """
    if noise is None or not noise.known or not ratio.known or not ratio.excludes_one:
        return False
    low, high = noise_floor(noise)
    return not low <= ratio.value <= high


def noise_floor(noise: Interval) -> tuple[float, float]:
    """The range of ratios that the same configuration shows against itself: symmetric about 1 on the log scale."""
    reach = max(noise.high, 1 / noise.low if noise.low > 0 else math.inf, 1.0)
    return (0.0 if math.isinf(reach) else 1 / reach, reach)


def median(values: Sequence[float]) -> float:
    """The median; of an even number of values the mean of the two in the middle.

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("no values have no median")
    ordered = sorted(values)
    half = len(ordered) // 2
    return float(ordered[half]) if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean of positive numbers.

    Raises:
        ValueError: there are no values, or one is not positive.
    """
    if not values or min(values) <= 0:
        raise ValueError("a geometric mean needs positive values")
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))


def _half_width(logs: NDArray[np.float64], seed: int) -> float:
    count = len(logs)
    if count < FEWEST_PAIRS:
        return math.inf
    deviation = float(logs.std(ddof=1))
    # Exactly equal ratios (a count of faults, say) have no spread to draw from, and none to report.
    if deviation <= 1e-12 * max(1.0, float(np.abs(logs).max())):
        return 0.0
    draws = logs[_indices(count, seed)]
    means = draws.mean(axis=1) - logs.mean()
    spreads = draws.std(axis=1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = np.where(spreads > 1e-9 * deviation, np.abs(means) / (spreads / math.sqrt(count)), math.inf)
    reach = min(float(np.quantile(sizes, CONFIDENCE, method="higher")), WIDEST * _student(count - 1))
    return reach * deviation / math.sqrt(count)


def _student(freedom: int) -> float:
    """The size that Student's t stays below 95 times in 100: Cornish and Fisher's expansion, 2 % off at three degrees.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5.
    """
    z, n = 1.959964, float(freedom)
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )


@functools.lru_cache(maxsize=8)  # a summary asks for the same draws once for each metric and configuration
def _indices(count: int, seed: int) -> NDArray[np.int64]:
    """Draws and their mirror images, so that exchanging the two sides of a comparison mirrors the interval exactly."""
    drawn = np.random.default_rng([seed & 0xFFFFFFFF, count]).integers(0, count, size=(RESAMPLES // 2, count))
    return np.concatenate([drawn, count - 1 - drawn])


def _mirrored_mean(logs: NDArray[np.float64]) -> float:
    """The mean with an exactly rounded sum: its negation is the mean of the negated values."""
    return math.fsum(logs.tolist()) / len(logs)


def exponential(value: float) -> float:
    """e to the power of a logarithm; infinite where a float cannot hold it."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf
