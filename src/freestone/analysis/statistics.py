"""What a handful of paired measurements says, and no more: the one estimator and the one interval. Pure functions.

The estimator is the mean of logarithms, so the geometric mean: of a configuration's values over rounds, and of its
ratios to another within rounds, where the one is then the quotient of the other. The interval is Student's. Nothing is
left out, whether a run was disturbed or slow of its own: in a round's random order a disturbance meets every
configuration alike, so the mean of what it does to a ratio is nothing, whatever its shape. Trimming, medians and ranks
have no such guarantee where one side is a mean of two runs, and no interval of 99.9 % at ten rounds; what was compared
is in ``docs/design/measurement.md``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from freestone.analysis import student

Key = TypeVar("Key", bound=Hashable)

CONFIDENCE: Final = 0.95
"""Of all intervals of a table together."""

FEWEST_PAIRS: Final = 4
"""Below this no interval is given: with two degrees of freedom it is too wide to say anything."""

_EXACT: Final = 1e-12
"""What rounding makes of equal values: a spread no larger than this, relative to the logarithms, is none."""


@dataclass(frozen=True)
class Interval:
    """A ratio with its interval; ``low`` is 0 and ``high`` infinite where the pairs are too few to tell."""

    value: float
    low: float
    high: float
    pairs: int

    @property
    def known(self) -> bool:
        """Whether there were enough pairs for an interval."""
        return self.low > 0 and self.high < math.inf

    @property
    def excludes_one(self) -> bool:
        """Whether 'no change' lies outside the interval."""
        return self.low > 1 or self.high < 1

    @property
    def is_below_one(self) -> bool:
        """Whether it is known, and all of it lies below 1."""
        return self.known and self.high < 1


@dataclass(frozen=True)
class Estimate:
    """A mean of logarithms, its standard error, the degrees of freedom of that, and how many there were."""

    middle: float
    error: float
    freedom: float
    count: int
    grain: float = 0.0
    """The interval reaches at least so far to both sides: what is counted in steps is known no better than to one."""


def estimate(logs: Sequence[float], grain: float = 0.0) -> Estimate:
    """What logarithms say of their mean; with fewer than :data:`FEWEST_PAIRS` the error is infinite.

    Args:
        logs: one for each round.
        grain: what one step of what was counted is on this scale; 0 for what is measured, not counted.

    Raises:
        ValueError: there are none.
    """
    if not logs:
        raise ValueError("no values have no middle")
    count = len(logs)
    middle = _within(math.fsum(logs) / count, logs)
    if count < FEWEST_PAIRS:
        return Estimate(middle, math.inf, 1.0, count, grain)
    freedom = count - 1
    error = math.sqrt(math.fsum((value - middle) ** 2 for value in logs) / (count * freedom))
    # Exactly equal ratios have no spread to report; rounding is none.
    scale = max(1.0, max(abs(value) for value in logs))
    return Estimate(middle, 0.0 if error <= _EXACT * scale else error, float(freedom), count, grain)


def weighted(parts: Sequence[tuple[float, Estimate]]) -> Estimate:
    """The sum of independent estimates, each times its weight; degrees of freedom are Welch's and Satterthwaite's.

    Raises:
        ValueError: there are none.
    """
    if not parts:
        raise ValueError("no estimates have no sum")
    middle = math.fsum(weight * part.middle for weight, part in parts)
    variances = [(weight * part.error) ** 2 for weight, part in parts]
    variance = math.fsum(variances)
    count = min(part.count for _, part in parts)
    grain = math.fsum(abs(weight) * part.grain for weight, part in parts)
    if not 0 < variance < math.inf:
        return Estimate(middle, math.sqrt(variance), math.fsum(part.freedom for _, part in parts), count, grain)
    # Relative to the sum: the squares of small variances would vanish.
    shares = [each / variance for each in variances]
    freedom = 1 / math.fsum(share**2 / part.freedom for share, (_, part) in zip(shares, parts, strict=True))
    return Estimate(middle, math.sqrt(variance), freedom, count, grain)


def interval(of: Estimate, confidence: float) -> Interval:
    """The ratio whose logarithm was estimated, with its two-sided interval.

    Args:
        confidence: above 0, below 1.
    """
    value = exponential(of.middle)
    if math.isinf(of.error):
        return Interval(value, 0.0, math.inf, of.count)
    half = of.grain if of.error == 0 else max(of.grain, student.quantile(of.freedom, confidence) * of.error)
    if half == 0:
        return Interval(value, value, value, of.count)
    return Interval(value, exponential(of.middle - half), exponential(of.middle + half), of.count)


def paired(one: Sequence[float], other: Sequence[float], step: float = 0.0) -> Estimate | None:
    """The logarithm of the ratio ``one / other``, where ``one[i]`` and ``other[i]`` were measured in the same round.

    Args:
        step: what is counted comes in steps of so much: the interval reaches at least that far. A few rounds often
            have the same count by chance, and an interval of no width is never true of what varies. 0 for what is
            measured.

    Returns:
        None where a ratio has no meaning: no pairs at all, or a value that is not a positive finite number.

    Raises:
        ValueError: the lengths differ.
    """
    if len(one) != len(other):
        raise ValueError(f"pairs need equal lengths, not {len(one)} and {len(other)}")
    if not one or not all(0 < value < math.inf for value in (*one, *other)):
        return None
    return estimate([math.log(a) - math.log(b) for a, b in zip(one, other, strict=True)], grain(step, (*one, *other)))


def within_rounds(one: Mapping[Key, float], other: Mapping[Key, float], step: float = 0.0) -> Estimate | None:
    """The logarithm of the ratio ``one / other`` over the rounds that both have.

    Args:
        one: round -> value; a round is whatever names it.
        other: that which ``one`` is held against.
        step: as in :func:`paired`.

    Returns:
        None where they share no round, or a value of a shared one is not a positive finite number.
    """
    common = [number for number in one if number in other]
    return paired([one[number] for number in common], [other[number] for number in common], step)


def grain(step: float, values: Sequence[float]) -> float:
    """What one step of what is counted is of the smallest of some values, as a logarithm; 0 for a step of 0."""
    return math.log1p(step / min(values))


def paired_ratio(
    one: Sequence[float], other: Sequence[float], confidence: float = CONFIDENCE, step: float = 0.0
) -> Interval | None:
    """The ratio ``one / other`` with its interval; arguments and errors are those of :func:`paired`.

    Args:
        confidence: of this interval alone; 95 % unless it stands beside others (:mod:`freestone.analysis.family`).
    """
    found = paired(one, other, step)
    return None if found is None else interval(found, confidence)


def median(values: Sequence[float]) -> float:
    """The median; of an even number of values the mean of the two in the middle.

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("no values have no median")
    ordered = sorted(values)
    half = len(ordered) // 2
    if len(ordered) % 2:
        return float(ordered[half])
    middle = ordered[half - 1 : half + 1]
    # Halved first: the sum of the largest floats is none. The half of the smallest is nothing, so it is held within.
    return _within(middle[0] / 2 + middle[1] / 2, middle)


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean of positive numbers.

    Raises:
        ValueError: there are no values, or one is not positive.
    """
    if not values or min(values) <= 0:
        raise ValueError("a geometric mean needs positive values")
    return _within(exponential(math.fsum(math.log(value) for value in values) / len(values)), values)


def exponential(value: float) -> float:
    """e to the power of a logarithm; infinite where a float cannot hold it."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _within(value: float, values: Sequence[float]) -> float:
    """A mean lies among its values; rounding, at the edge of what floats hold, may have put it outside."""
    return min(max(value, min(values)), max(values))
