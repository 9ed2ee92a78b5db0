"""How a ratio is written, so that its digits say what was seen."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from freestone.analysis import digits

NEAR_ONE = st.floats(0.9, 1.1) | st.floats(1e-9, 1 - 1e-9) | st.floats(1 + 1e-9, 1e9)


@given(NEAR_ONE, st.integers(0, 9))
def test_what_is_told_apart_from_1_is_not_written_as_1(value: float, decimals: int) -> None:
    assume(value != 1)
    said = float(digits.number(value, decimals, different=True))
    assert said != 1
    assert (said > 1) == (value > 1)


@given(NEAR_ONE, st.integers(0, 9))
def test_the_digits_of_what_is_not_told_apart_stay_what_they_are(value: float, decimals: int) -> None:
    assert digits.number(value, decimals, different=False) == f"{value:.{decimals}f}"


@given(st.floats(0.5, 2), st.integers(0, 9))
def test_more_decimals_are_for_what_would_look_like_1_alone(value: float, decimals: int) -> None:
    plain = f"{value:.{decimals}f}"
    assume(float(plain) != 1)
    assert digits.number(value, decimals, different=True) == plain


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.998, "0.998"), (0.9996, "0.9996"), (0.99999999, "0.999999"), (1.00000001, "1.000001"), (0.85, "0.85")],
)
def test_it_has_as_many_decimals_as_it_takes(value: float, said: str) -> None:
    assert digits.number(value, 2, different=True) == said
