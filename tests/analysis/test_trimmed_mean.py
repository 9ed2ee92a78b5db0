"""The intervals under every verdict on a change: they hold what they promise at 95 % and far beyond."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from freestone.analysis import trimmed_mean
from freestone.analysis.trimmed_mean import estimate, interval, weighted

Noise = Callable[[np.random.Generator, int], NDArray[np.float64]]

logs = st.lists(st.floats(-10, 10), min_size=1, max_size=30)


@given(logs, st.floats(-5, 5))
def test_moving_all_values_moves_the_middle_and_nothing_else(values: list[float], by: float) -> None:
    there, here = estimate([value + by for value in values]), estimate(values)
    assert there.middle == pytest.approx(here.middle + by, abs=1e-9)
    assert there.error == pytest.approx(here.error, rel=1e-6, abs=1e-9)
    assert there.freedom == here.freedom


@given(logs, st.randoms())
def test_the_order_of_values_has_no_influence(values: list[float], random: object) -> None:
    mixed = list(values)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert estimate(mixed) == estimate(values)


@given(logs)
def test_the_middle_lies_within_the_values(values: list[float]) -> None:
    of = estimate(values)
    assert min(values) - 1e-9 <= of.middle <= max(values) + 1e-9
    assert math.isinf(of.error) == (len(values) < 4)


@given(st.lists(st.floats(-1, 1), min_size=8, max_size=30))
def test_one_disturbed_value_changes_little(values: list[float]) -> None:
    """However far out it lies: it is among those that are left out."""
    far, farther = (interval(estimate([*values, by]), 0.95) for by in (5.0, 500.0))
    assert (far.value, far.low, far.high) == (farther.value, farther.low, farther.high)


@given(logs, st.floats(0.5, 0.9), st.floats(0.95, 0.9999))
def test_more_confidence_is_a_wider_interval(values: list[float], less: float, more: float) -> None:
    narrow, wide = interval(estimate(values), less), interval(estimate(values), more)
    assert wide.low <= narrow.low <= narrow.value <= narrow.high <= wide.high


def test_equal_values_have_an_interval_without_width() -> None:
    of = interval(estimate([math.log(2.0)] * 5), 0.999)
    assert (of.low, of.value, of.high) == pytest.approx((2.0, 2.0, 2.0))


def test_too_few_values_claim_nothing() -> None:
    of = interval(estimate([0.1, 0.1, 0.1]), 0.95)
    assert (of.low, of.high) == (0.0, math.inf)
    part = weighted([(1.0, estimate([0.1] * 9)), (-1.0, estimate([0.2] * 3))])
    assert math.isinf(part.error)


def test_a_sum_of_one_is_that_one() -> None:
    one = estimate([0.1, 0.3, 0.2, 0.5, 0.4])
    same = weighted([(1.0, one)])
    assert (same.middle, same.error, same.freedom) == pytest.approx((one.middle, one.error, one.freedom))


@given(logs.filter(lambda values: len(values) >= 4), logs.filter(lambda values: len(values) >= 4))
def test_a_difference_knows_less_than_either_side(one: list[float], other: list[float]) -> None:
    a, b = estimate(one), estimate(other)
    apart = weighted([(1.0, a), (-1.0, b)])
    assert apart.middle == pytest.approx(a.middle - b.middle, abs=1e-9)
    assert apart.error >= max(a.error, b.error) * (1 - 1e-9)
    assert apart.freedom <= a.freedom + b.freedom + 1e-6


def test_no_values_and_no_parts_are_errors() -> None:
    with pytest.raises(ValueError, match="no values"):
        estimate([])
    with pytest.raises(ValueError, match="no estimates"):
        weighted([])


def test_the_error_of_many_plain_values_is_the_textbook_one() -> None:
    """Without trimming (four values) it is the standard error of the mean, with three degrees of freedom."""
    values = [0.1, 0.4, 0.2, 0.7]
    of = estimate(values)
    expected = (np.mean(values), np.std(values, ddof=1) / 2, 3, 4)
    assert (of.middle, of.error, of.freedom, of.count) == pytest.approx(expected)


def _normal(random: np.random.Generator, rounds: int) -> NDArray[np.float64]:
    return random.normal(0, 0.05, rounds)


def _heavy_tailed(random: np.random.Generator, rounds: int) -> NDArray[np.float64]:
    return 0.03 * random.standard_t(3, rounds)


def _spiked(random: np.random.Generator, rounds: int) -> NDArray[np.float64]:
    """Quiet, and one run in ten disturbed: what a shared machine looks like."""
    return random.normal(0, 0.01, rounds) + (random.random(rounds) < 0.1) * random.exponential(0.3, rounds)


NOISES = [_normal, _heavy_tailed, _spiked]
EXPERIMENTS = 4000


@pytest.mark.parametrize("rounds", [4, 5, 10, 20])
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("confidence", [0.95, 0.999])
def test_sides_that_are_alike_are_seldom_told_apart(noise: Noise, rounds: int, confidence: float) -> None:
    random = np.random.default_rng([1974, rounds])
    wrong: int = 0
    for _ in range(EXPERIMENTS):
        one, other = estimate(noise(random, rounds).tolist()), estimate(noise(random, rounds).tolist())
        wrong += int(interval(weighted([(1.0, one), (-1.0, other)]), confidence).excludes_one)
    promised = 1 - confidence
    assert wrong / EXPERIMENTS <= promised + 3 * math.sqrt(promised / EXPERIMENTS) + 0.002


@pytest.mark.parametrize("noise", NOISES)
def test_a_change_is_found_through_disturbed_rounds(noise: Noise) -> None:
    random = np.random.default_rng(1947)
    found = 0
    for _ in range(400):
        before, after = estimate(noise(random, 20).tolist()), estimate((noise(random, 20) + 0.06).tolist())
        found += int(interval(weighted([(1.0, after), (-1.0, before)]), 0.95).low > 1)
    assert found / 400 >= 0.8


def test_trimming_pays_where_rounds_are_disturbed() -> None:
    """Against the plain mean: what made it be chosen."""
    random = np.random.default_rng(1963)
    narrower = 0
    for _ in range(200):
        values = _spiked(random, 20)
        narrower += int(trimmed_mean.estimate(values.tolist()).error < np.std(values, ddof=1) / math.sqrt(20))
    assert narrower / 200 >= 0.6
