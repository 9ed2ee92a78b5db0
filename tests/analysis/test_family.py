"""The 5 % of a table, dealt out to its claims."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.analysis import family


@given(st.lists(st.integers(0, 1000), min_size=4, max_size=4))
def test_all_claims_of_a_table_together_spend_no_more_than_five_per_cent(counts: list[int]) -> None:
    shares = (family.TIME, family.COLUMNS, family.OTHERS, family.RIVALS)
    spent = sum(n * (1 - family.confidence(share, n)) for share, n in zip(shares, counts, strict=True))
    assert spent <= 0.05 * (1 + 1e-9)


def test_means_and_rows_share_the_five_per_cent() -> None:
    assert family.MEANS + family.ROWS == 1


def test_one_claim_alone_has_the_whole_of_its_share() -> None:
    assert family.confidence(1.0, 1) == pytest.approx(0.95)
    assert family.confidence(1.0, 0) == pytest.approx(0.95)


def test_pairs_are_counted_once() -> None:
    assert [family.pairs(n) for n in range(5)] == [0, 0, 1, 3, 6]
