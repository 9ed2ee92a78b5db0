"""The quantile of Student's t: known tables, closed forms, and what must hold of any."""

from __future__ import annotations

import math
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.analysis.student import quantile, tail

# Abramowitz and Stegun, Handbook of Mathematical Functions, table 26.10: two-sided.
TABLE = {
    (1, 0.95): 12.706, (1, 0.99): 63.657, (1, 0.999): 636.619,
    (2, 0.95): 4.303, (2, 0.99): 9.925, (2, 0.999): 31.599,
    (3, 0.90): 2.353, (3, 0.95): 3.182, (3, 0.999): 12.924,
    (4, 0.95): 2.776, (4, 0.998): 7.173, (4, 0.9999): 15.544,
    (9, 0.95): 2.262, (9, 0.99): 3.250, (9, 0.999): 4.781, (9, 0.9999): 6.594,
    (30, 0.95): 2.042, (30, 0.9999): 4.482,
    (120, 0.95): 1.980, (120, 0.9999): 4.025,
}  # fmt: skip

freedoms = st.floats(0.5, 1e6)
confidences = st.floats(0.01, 1 - 1e-9)


@pytest.mark.parametrize(("freedom", "confidence"), TABLE)
def test_the_tables_of_the_handbook_are_met(freedom: int, confidence: float) -> None:
    assert quantile(freedom, confidence) == pytest.approx(TABLE[freedom, confidence], abs=6e-4, rel=3e-5)


@given(confidences)
def test_one_and_two_degrees_have_closed_forms(confidence: float) -> None:
    assert quantile(1, confidence) == pytest.approx(math.tan(math.pi * confidence / 2), rel=1e-6)
    # Of 1 - c and not of c, which near 1 has few digits left.
    short = 1 - confidence
    assert quantile(2, confidence) == pytest.approx(confidence * math.sqrt(2 / (short * (2 - short))), rel=1e-9)


@given(freedoms, confidences)
def test_the_quantile_is_where_the_tail_is_what_was_asked_for(freedom: float, confidence: float) -> None:
    assert tail(freedom, quantile(freedom, confidence)) == pytest.approx(1 - confidence, rel=1e-6)


@given(freedoms, freedoms, confidences)
def test_fewer_degrees_lie_farther_out(one: float, other: float, confidence: float) -> None:
    few, many = sorted((one, other))
    assert quantile(few, confidence) >= quantile(many, confidence) * (1 - 1e-7)


@given(freedoms, confidences, confidences)
def test_more_confidence_lies_farther_out(freedom: float, one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert quantile(freedom, less) <= quantile(freedom, more) * (1 + 1e-9)


@given(confidences)
def test_with_endless_degrees_it_is_the_normal_distribution(confidence: float) -> None:
    normal = -NormalDist().inv_cdf((1 - confidence) / 2)
    assert quantile(math.inf, confidence) == normal
    assert quantile(9.9e6, confidence) == pytest.approx(normal, rel=1e-5)


def test_the_whole_lies_beyond_nothing() -> None:
    assert tail(5, 0) == 1


@given(st.floats(1e-3, 1e300), st.floats(0, 1e300))
def test_no_size_and_no_freedom_is_too_large(freedom: float, size: float) -> None:
    assert 0 <= tail(freedom, size) <= 1


@pytest.mark.parametrize(
    ("freedom", "confidence"), [(0, 0.9), (-1, 0.9), (math.nan, 0.9), (3, 0), (3, 1), (3, math.nan)]
)
def test_what_has_no_quantile_is_refused(freedom: float, confidence: float) -> None:
    with pytest.raises(ValueError, match="no size"):
        quantile(freedom, confidence)
