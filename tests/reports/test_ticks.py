"""Labels of axes: few, round, and inside."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.reports import ticks
from freestone.reports.quantities import Kind

kinds = st.sampled_from(["time", "memory", "count"])


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("time", 1e-7, "100 ns"),
        ("time", 2.0, "2 s"),
        ("memory", 1536.0, "1.5 MiB"),
        ("count", 0.001, "0.001"),
        ("count", 10_000, "10,000"),
        ("memory", 0, "0"),
    ],
)
def test_values_in_words(kind: Kind, value: float, words: str) -> None:
    assert ticks.text(kind, value) == words


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("memory", 8620.0, "8.42 MiB"),
        ("time", 1.23456e-8, "12.3 ns"),
        ("count", 0.0096312, "0.00963"),
        ("count", 48_912, "48,900"),
        ("memory", 0, "0"),
    ],
)
def test_measured_values_have_three_digits_in_their_unit(kind: Kind, value: float, words: str) -> None:
    assert ticks.brief(kind, value) == words


@given(kinds, st.floats(1e-9, 1e9))
def test_three_digits_are_never_more(kind: Kind, value: float) -> None:
    number = ticks.brief(kind, value).split()[0].replace(",", "")
    assert len(f"{float(number):e}".partition("e")[0].rstrip("0").replace(".", "")) <= 3


@given(kinds, st.floats(1e-9, 1e9), st.floats(3, 1e12))
def test_logarithmic_labels_are_few_and_inside(kind: Kind, low: float, reach: float) -> None:
    found = ticks.logarithmic(kind, low, low * reach)
    assert 1 <= len(found) <= 2 * ticks.MOST
    assert found == sorted(set(found))
    assert all(low <= value <= low * reach for value in found)


@given(kinds, st.floats(1e-8, 1e10))
def test_linear_labels_begin_at_zero_in_equal_steps(kind: Kind, high: float) -> None:
    found = ticks.linear(kind, high)
    assert found[0] == 0
    assert 2 <= len(found) <= ticks.MOST
    assert found[-1] <= high * (1 + 1e-6)
    steps = [second - first for first, second in itertools.pairwise(found)]
    assert max(steps) == pytest.approx(min(steps))
