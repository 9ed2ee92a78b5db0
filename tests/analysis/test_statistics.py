"""The figures under every claim: what the interval promises, it keeps, also at five rounds."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from freestone.analysis import statistics
from freestone.analysis.statistics import Interval, is_different, noise_floor, paired_ratio

Noise = Callable[[np.random.Generator, int], NDArray[np.float64]]

positive = st.floats(1e-3, 1e6)
pairs = st.integers(1, 30).flatmap(
    lambda count: st.tuples(
        st.lists(positive, min_size=count, max_size=count), st.lists(positive, min_size=count, max_size=count)
    )
)


def _ratio(one: list[float], other: list[float]) -> Interval:
    ratio = paired_ratio(one, other)
    assert ratio is not None
    return ratio


@given(pairs)
def test_exchanging_the_sides_inverts_ratio_and_interval(sample: tuple[list[float], list[float]]) -> None:
    one, other = sample
    there, back = _ratio(one, other), _ratio(other, one)
    assert there.value == pytest.approx(1 / back.value, rel=1e-9)
    if there.known:
        assert there.low == pytest.approx(1 / back.high, rel=1e-6)
        assert there.high == pytest.approx(1 / back.low, rel=1e-6)


@given(pairs, st.floats(1e-3, 1e3))
def test_the_unit_of_measurement_has_no_influence(sample: tuple[list[float], list[float]], unit: float) -> None:
    one, other = sample
    plain, scaled = _ratio(one, other), _ratio([unit * x for x in one], [unit * x for x in other])
    assert scaled.value == pytest.approx(plain.value, rel=1e-6)
    assert scaled.known == plain.known


@given(pairs, st.randoms())
def test_the_order_of_rounds_has_no_influence(sample: tuple[list[float], list[float]], random: object) -> None:
    rounds = list(zip(*sample, strict=True))
    random.shuffle(rounds)  # type: ignore[attr-defined]
    assert _ratio([a for a, _ in rounds], [b for _, b in rounds]) == _ratio(*sample)


@given(pairs)
def test_the_interval_holds_its_value_and_the_value_lies_within_the_rounds(
    sample: tuple[list[float], list[float]],
) -> None:
    ratio = _ratio(*sample)
    each = [a / b for a, b in zip(*sample, strict=True)]
    assert ratio.low <= ratio.value <= ratio.high
    assert min(each) * (1 - 1e-9) <= ratio.value <= max(each) * (1 + 1e-9)
    assert ratio.pairs == len(each)


@given(pairs, st.integers(0, 2**64))
def test_the_same_seed_gives_the_same_interval(sample: tuple[list[float], list[float]], seed: int) -> None:
    assert paired_ratio(*sample, seed=seed) == paired_ratio(*sample, seed=seed)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_too_few_rounds_claim_nothing(count: int) -> None:
    ratio = _ratio([1.0 + i for i in range(count)], [1000.0] * count)
    assert not ratio.known
    assert (ratio.low, ratio.high) == (0.0, math.inf)
    assert not is_different(ratio, Interval(1.0, 1.0, 1.0, 10))


def test_equal_ratios_have_an_interval_without_width() -> None:
    ratio = _ratio([10.0, 20.0, 30.0, 40.0], [5.0, 10.0, 15.0, 20.0])
    assert (ratio.low, ratio.high) == pytest.approx((2.0, 2.0))
    assert is_different(ratio, Interval(1.0, 1.0, 1.0, 4))


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_value_without_a_logarithm_gives_no_ratio(bad: float) -> None:
    assert paired_ratio([1.0, bad], [1.0, 1.0]) is None
    assert paired_ratio([1.0, 1.0], [1.0, bad]) is None


def test_no_rounds_give_no_ratio() -> None:
    assert paired_ratio([], []) is None


def test_one_disturbed_round_among_equal_ones_does_not_make_the_interval_endless() -> None:
    ratio = _ratio([1.0, 1.0, 1.0, 1.0, 1.1], [1.0] * 5)
    assert ratio.low < 1 < ratio.high < 1.2


def test_sides_of_different_length_are_an_error() -> None:
    with pytest.raises(ValueError, match="equal lengths"):
        paired_ratio([1.0], [1.0, 2.0])


def _lognormal(random: np.random.Generator, rounds: int) -> NDArray[np.float64]:
    return np.exp(random.normal(0, 0.05, rounds))


def _heavy_tailed(random: np.random.Generator, rounds: int) -> NDArray[np.float64]:
    return np.exp(0.03 * random.standard_t(3, rounds))


def _spiked(random: np.random.Generator, rounds: int) -> NDArray[np.float64]:
    """Quiet, and one run in ten disturbed: what a shared machine looks like."""
    disturbed = random.random(rounds) < 0.1
    return np.exp(random.normal(0, 0.01, rounds) + disturbed * random.exponential(0.3, rounds))


def _drifting(random: np.random.Generator, rounds: int) -> NDArray[np.float64]:
    """What pairing is for: both sides of a round share a machine that grows slower."""
    return np.exp(random.normal(0, 0.02, rounds))


def _almost_constant(random: np.random.Generator, rounds: int) -> NDArray[np.float64]:
    """Counts of page faults: whole numbers that hardly differ."""
    return 1000.0 + random.poisson(0.5, rounds).astype(np.float64)


NOISES = [_lognormal, _heavy_tailed, _spiked, _almost_constant]
TRUTH = 0.9
EXPERIMENTS = 600


@pytest.mark.parametrize("rounds", [4, 5, 10, 20])
@pytest.mark.parametrize("noise", NOISES)
def test_the_interval_holds_the_truth_as_often_as_it_claims(noise: Noise, rounds: int) -> None:
    random = np.random.default_rng([1988, rounds])
    held = 0
    for _ in range(EXPERIMENTS):
        baseline = noise(random, rounds)
        other = TRUTH * noise(random, rounds)
        ratio = _ratio(other.tolist(), baseline.tolist())
        held += ratio.low <= TRUTH <= ratio.high
    assert held / EXPERIMENTS >= 0.93


@pytest.mark.parametrize("rounds", [4, 5, 10, 20])
@pytest.mark.parametrize("noise", [*NOISES, _drifting])
def test_a_configuration_that_changes_nothing_is_called_different_at_most_once_in_twenty(
    noise: Noise, rounds: int
) -> None:
    random = np.random.default_rng([1908, rounds])
    alarms = alarms_without_floor = 0
    for _ in range(EXPERIMENTS):
        machine = np.exp(np.linspace(0, 0.3, rounds)) if noise is _drifting else np.ones(rounds)
        first, second, same = (machine * noise(random, rounds) for _ in range(3))
        floor = _ratio(second.tolist(), first.tolist())
        ratio = _ratio(same.tolist(), np.sqrt(first * second).tolist())
        alarms += is_different(ratio, floor)
        alarms_without_floor += ratio.excludes_one
    assert alarms / EXPERIMENTS <= 0.05
    assert alarms_without_floor / EXPERIMENTS <= 0.07


@pytest.mark.parametrize(("rounds", "effect"), [(5, 0.75), (10, 0.9), (20, 0.93)])
def test_a_real_difference_is_found(rounds: int, effect: float) -> None:
    random = np.random.default_rng([2024, rounds])
    found = 0
    for _ in range(200):
        first, second, other = (_lognormal(random, rounds) for _ in range(3))
        floor = _ratio(second.tolist(), first.tolist())
        found += is_different(_ratio((effect * other).tolist(), np.sqrt(first * second).tolist()), floor)
    assert found / 200 >= 0.8


def test_a_ratio_within_the_noise_is_not_a_difference() -> None:
    ratio = Interval(0.95, 0.94, 0.96, 10)
    assert is_different(ratio, Interval(1.0, 0.99, 1.01, 10))
    assert not is_different(ratio, Interval(1.04, 1.02, 1.06, 10)), "noise counts in both directions"
    assert not is_different(ratio, None), "without an A/A comparison there is no claim"
    assert not is_different(ratio, Interval(1.0, 0.0, math.inf, 3))


def test_the_noise_floor_holds_one_and_is_symmetric() -> None:
    assert noise_floor(Interval(1.05, 1.02, 1.25, 5)) == pytest.approx((0.8, 1.25))
    assert noise_floor(Interval(0.9, 0.8, 0.95, 5)) == pytest.approx((0.8, 1.25))
    assert noise_floor(Interval(1.0, 0.0, math.inf, 1)) == (0.0, math.inf)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1))
def test_the_median_parts_the_values_in_halves(values: list[float]) -> None:
    middle = statistics.median(values)
    assert sum(value < middle for value in values) <= len(values) / 2
    assert sum(value > middle for value in values) <= len(values) / 2


def test_no_values_have_no_median_and_no_mean() -> None:
    with pytest.raises(ValueError, match="no values"):
        statistics.median([])
    with pytest.raises(ValueError, match="positive"):
        statistics.geometric_mean([1.0, 0.0])
