"""The interval of a median holds what it claims, for any distribution."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.analysis import medians

values = st.lists(st.floats(-1e9, 1e9), max_size=60)


@pytest.mark.parametrize("count", range(6))
def test_fewer_than_six_values_have_none(count: int) -> None:
    assert medians.interval([1.0] * count) is None


@given(values, st.randoms(use_true_random=False))
def test_it_is_two_of_the_values_about_the_median_whatever_their_order(
    drawn: list[float], source: random.Random
) -> None:
    found = medians.interval(drawn)
    if found is None:
        assert len(drawn) < 6
        return
    ordered = sorted(drawn)
    low, high = found
    assert low in drawn
    assert high in drawn
    assert low <= ordered[(len(drawn) - 1) // 2]
    assert high >= ordered[len(drawn) // 2]
    source.shuffle(drawn)
    assert medians.interval(drawn) == found


@given(st.integers(6, 200))
def test_it_covers_95_times_in_100_and_is_no_wider_than_it_needs(count: int) -> None:
    found = medians.interval(range(count))
    assert found is not None
    rank = int(found[0])
    assert found == (rank, count - 1 - rank)

    def missed(most: int) -> float:
        return 2 * sum(math.comb(count, heads) for heads in range(most + 1)) / 2**count

    assert missed(rank) <= 0.05
    assert missed(rank + 1) > 0.05
