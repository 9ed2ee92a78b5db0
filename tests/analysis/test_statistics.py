"""The figures under every claim: what the interval promises, it keeps, also at four rounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from simulated_tables import noise

from freestone.analysis import statistics
from freestone.analysis.statistics import Interval, estimate, interval, paired, paired_ratio, weighted

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


@pytest.mark.parametrize("count", [1, 2, 3])
def test_too_few_rounds_claim_nothing(count: int) -> None:
    ratio = _ratio([1.0 + i for i in range(count)], [1000.0] * count)
    assert not ratio.known
    assert (ratio.low, ratio.high) == (0.0, math.inf)
    assert not ratio.excludes_one


def test_equal_ratios_have_an_interval_without_width() -> None:
    ratio = _ratio([10.0, 20.0, 30.0, 40.0], [5.0, 10.0, 15.0, 20.0])
    assert (ratio.low, ratio.high) == pytest.approx((2.0, 2.0))
    assert ratio.excludes_one


@given(
    counts=st.lists(st.integers(1, 2000), min_size=4, max_size=12),
    off=st.integers(-1, 1),
    step=st.sampled_from([1.0, 4.0]),
    confidence=st.floats(0.5, 0.9999),
)
def test_what_is_counted_is_known_no_better_than_to_a_step(
    counts: list[int], off: int, step: float, confidence: float
) -> None:
    """However alike the rounds are: the interval holds what a step more and a step less would give."""
    one = [count * step for count in counts]
    other = [max(step, value + off * step) for value in one]
    found = statistics.paired_ratio(one, other, confidence, step)
    assert found is not None
    assert found.low <= found.value * min(one) / (min(one) + step) * (1 + 1e-9)
    assert found.high >= found.value * (min(one) + step) / min(one) * (1 - 1e-9)
    plain = statistics.paired_ratio(one, other, confidence)
    assert plain is not None
    assert (found.value, found.low <= plain.low * (1 + 1e-9), found.high * (1 + 1e-9) >= plain.high) == (
        plain.value,
        True,
        True,
    )


def test_a_sum_keeps_the_steps_of_its_parts() -> None:
    part = statistics.estimate([0.5] * 5, 0.01)
    found = statistics.interval(statistics.weighted([(0.5, part), (0.5, part)]), 0.95)
    assert (found.low, found.high) == pytest.approx((math.exp(0.49), math.exp(0.51)))


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


TRUTH = 0.9
EXPERIMENTS = 2000
CONFIDENCES = (0.95, 0.999)


@pytest.mark.parametrize("rounds", [6, 20])
@pytest.mark.parametrize("kind", noise.KINDS)
def test_the_interval_holds_the_truth_as_often_as_it_claims(kind: str, rounds: int) -> None:
    """Against a baseline that is the mean of two runs, as in a table, which makes skewed noise skewed ratios."""
    random = np.random.default_rng([1908, rounds])
    missed = dict.fromkeys(CONFIDENCES, 0)
    for _ in range(EXPERIMENTS):
        logs = noise.rounds(kind, random, rounds, 3)
        first, second, other = np.exp(logs - logs.mean()).T
        found = paired((TRUTH * other).tolist(), np.sqrt(first * second).tolist())
        assert found is not None
        for confidence in CONFIDENCES:
            held = interval(found, confidence)
            missed[confidence] += not held.low <= TRUTH <= held.high
    for confidence, count in missed.items():
        promised = 1 - confidence
        assert count / EXPERIMENTS <= 1.4 * promised + 3 * math.sqrt(promised / EXPERIMENTS)


def test_nothing_is_left_out_a_slow_mode_is_in_the_ratio() -> None:
    """Two runs of ten that take ten times as long are two runs of ten: neither trimmed nor passed over by a median."""
    ratio = _ratio([1.0] * 8 + [10.0] * 2, [1.0] * 10)
    assert ratio.value == pytest.approx(10**0.2)


logs = st.lists(st.floats(-10, 10), min_size=1, max_size=30)


@given(logs, st.floats(-5, 5))
def test_moving_all_logarithms_moves_their_mean_and_nothing_else(values: list[float], by: float) -> None:
    there, here = estimate([value + by for value in values]), estimate(values)
    assert there.middle == pytest.approx(here.middle + by, abs=1e-9)
    assert there.error == pytest.approx(here.error, rel=1e-6, abs=1e-9)
    assert there.freedom == here.freedom


@given(logs, st.floats(0.5, 0.9), st.floats(0.95, 0.9999))
def test_more_confidence_is_a_wider_interval(values: list[float], less: float, more: float) -> None:
    narrow, wide = interval(estimate(values), less), interval(estimate(values), more)
    assert wide.low <= narrow.low <= narrow.value <= narrow.high <= wide.high


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


def test_a_part_that_knows_nothing_makes_a_sum_that_knows_nothing() -> None:
    part = weighted([(1.0, estimate([0.1] * 9)), (-1.0, estimate([0.2] * 3))])
    assert math.isinf(part.error)


def test_the_error_is_the_textbook_one() -> None:
    values = [0.1, 0.4, 0.2, 0.7]
    of = estimate(values)
    expected = (np.mean(values), np.std(values, ddof=1) / 2, 3, 4)
    assert (of.middle, of.error, of.freedom, of.count) == pytest.approx(expected)


def test_no_values_and_no_parts_are_errors() -> None:
    with pytest.raises(ValueError, match="no values"):
        estimate([])
    with pytest.raises(ValueError, match="no estimates"):
        weighted([])


any_positive = st.floats(5e-324, 1.7e308)
"""Down to the smallest and up to the largest that there is."""


@given(st.lists(st.tuples(any_positive, any_positive), min_size=1, max_size=12))
def test_the_edge_of_what_numbers_hold_does_no_harm(sample: list[tuple[float, float]]) -> None:
    one, other = ([side[place] for side in sample] for place in (0, 1))
    ratio = _ratio(one, other)
    assert 0 <= ratio.low <= ratio.value <= ratio.high
    for values in (one, other):
        assert min(values) <= statistics.geometric_mean(values) <= max(values)
        assert min(values) <= statistics.median(values) <= max(values)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1))
@example([0.0, 1.0, 5e-324, 5e-324])  # halves of the smallest number are nothing
def test_the_median_parts_the_values_in_halves(values: list[float]) -> None:
    middle = statistics.median(values)
    assert sum(value < middle for value in values) <= len(values) / 2
    assert sum(value > middle for value in values) <= len(values) / 2


def test_no_values_have_no_median_and_no_mean() -> None:
    with pytest.raises(ValueError, match="no values"):
        statistics.median([])
    with pytest.raises(ValueError, match="positive"):
        statistics.geometric_mean([1.0, 0.0])


@given(st.dictionaries(st.integers(0, 9), positive), st.dictionaries(st.integers(0, 9), positive))
def test_rounds_that_only_one_has_are_in_no_ratio(one: dict[int, float], other: dict[int, float]) -> None:
    common = sorted(one.keys() & other.keys())
    found = statistics.within_rounds(one, other, 0.5)
    expected = paired([one[number] for number in common], [other[number] for number in common], 0.5)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found.middle == pytest.approx(expected.middle)
        assert (found.count, found.freedom, found.grain) == (expected.count, expected.freedom, expected.grain)
