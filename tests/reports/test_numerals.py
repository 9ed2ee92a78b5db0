"""Whole numbers as people say them."""

from __future__ import annotations

import pytest

from freestone.reports.numerals import bytes_in_words, count_in_words


@pytest.mark.parametrize(("size", "words"), [(8, "8 B"), (1536, "1.5 KiB"), (1 << 20, "1 MiB"), (1 << 30, "1 GiB")])
def test_sizes_in_words(size: int, words: str) -> None:
    assert bytes_in_words(size) == words


@pytest.mark.parametrize(("number", "words"), [(64, "64"), (1000, "1,000"), (250_000, "250 k"), (10**7, "10 M")])
def test_counts_in_words(number: int, words: str) -> None:
    assert count_in_words(number) == words
