"""Student's t: how far out a share of it lies. Pure functions, without a library for the one quantile that is needed.

The share is an incomplete beta function, by its continued fraction (B. P. Carlson's form, DLMF 8.17.22, evaluated as
W. J. Lentz did) and in logarithms throughout, so that shares far below what a float's exponent holds still have an
answer; the quantile is Newton's on the logarithms of both, where the curve is concave and the steps cannot run away.
"""

from __future__ import annotations

import functools
import math
from statistics import NormalDist
from typing import Final

_NORMAL_FROM: Final = 1e7
"""Degrees of freedom from which on it is the normal distribution, to better than a millionth."""
_STEPS: Final = 500
_PRECISION: Final = 1e-15


@functools.lru_cache(maxsize=4096)  # a table asks for the same few over and over
def quantile(freedom: float, confidence: float) -> float:
    """The size that Student's t stays below with this probability: 2.776 of 4 degrees and 0.95.

    Args:
        freedom: degrees of freedom, above 0; need not be whole, may be infinite.
        confidence: above 0, below 1.

    Raises:
        ValueError: either lies outside.
    """
    if not freedom > 0 or not 0 < confidence < 1:
        raise ValueError(f"Student's t has no size for {freedom} degrees of freedom and a probability of {confidence}")
    if freedom >= _NORMAL_FROM:
        return -NormalDist().inv_cdf((1 - confidence) / 2)
    wanted = math.log1p(-confidence)
    at = 0.0  # the logarithm of t
    for _ in range(_STEPS):
        size = math.exp(at)
        tail = _log_tail(freedom, size)
        # d log(tail) / d log(t) = -2 t density(t) / tail
        slope = -math.exp(math.log(2) + at + _log_density(freedom, size) - tail)
        step = (tail - wanted) / slope
        at -= max(-20.0, min(20.0, step))
        if abs(step) <= 1e-13 * max(1.0, abs(at)):
            break
    return math.exp(at)


def tail(freedom: float, size: float) -> float:
    """The probability that Student's t lies as far out as ``size`` on either side, or farther.

    Args:
        freedom: degrees of freedom, above 0; may be infinite.
        size: not below 0.
    """
    if freedom >= _NORMAL_FROM:
        return 2 * NormalDist().cdf(-size)
    return 1.0 if size == 0 else math.exp(_log_tail(freedom, size))


def _log_tail(freedom: float, size: float) -> float:
    # x = freedom / (freedom + size ** 2) and 1 - x, without a square that overflows.
    away = 2 * math.log(size) - math.log(freedom)
    log_x, log_rest = -_log_one_plus_exp(away), away - _log_one_plus_exp(away)
    half = freedom / 2
    if log_x < math.log((half + 1) / (half + 2.5)):
        return _log_beta_share(half, 0.5, log_x, log_rest)
    return math.log1p(-min(math.exp(_log_beta_share(0.5, half, log_rest, log_x)), 1 - 1e-16))


def _log_density(freedom: float, size: float) -> float:
    square = math.exp(min(700.0, 2 * math.log(size) - math.log(freedom)))
    return -_log_beta(freedom / 2, 0.5) - math.log(freedom) / 2 - (freedom + 1) / 2 * math.log1p(square)


def _log_beta_share(a: float, b: float, log_x: float, log_rest: float) -> float:
    """The logarithm of the regularised incomplete beta function at x, where x < (a + 1) / (a + b + 2)."""
    front = a * log_x + b * log_rest - math.log(a) - _log_beta(a, b)
    return front + math.log(_fraction(a, b, math.exp(log_x)))


def _fraction(a: float, b: float, x: float) -> float:
    tiny = 1e-300
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > tiny else tiny)
    value = d
    for m in range(1, _STEPS):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + numerator * d
            c = 1 + numerator / c
            d = 1 / (d if abs(d) > tiny else tiny)
            c = c if abs(c) > tiny else tiny
            value *= c * d
        if abs(c * d - 1) < _PRECISION:
            break
    return value


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _log_one_plus_exp(value: float) -> float:
    """log(1 + e ** value), also where e ** value is no float."""
    return value + math.log1p(math.exp(-value)) if value > 0 else math.log1p(math.exp(value))
