"""The latency of single calls: shares that fall, and a line that ends at the longest call."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.records.schema import TrialRecord
from freestone.reports.tails import data

WORKLOAD = "json-sqlite"


histograms = st.dictionaries(st.integers(1, 1 << 40), st.integers(1, 1 << 40), min_size=1, max_size=30)


@given(histograms)
def test_a_share_is_of_the_calls_that_took_so_long_or_longer(calls: dict[int, int]) -> None:
    found = data.course(calls)
    whole = sum(calls.values())
    assert [point.ns for point in found] == sorted(calls)
    for point in found[:-1]:
        slower = sum(count for end, count in calls.items() if end > point.ns)
        assert math.isclose(point.share, slower / whole)
    assert math.isclose(found[-1].share, calls[max(calls)] / whole)


@given(histograms, st.floats(0, 1 << 41))
def test_a_line_ends_at_the_longest_call_within_its_bucket(calls: dict[int, int], longest: float) -> None:
    found, without = data.course(calls, longest), data.course(calls)
    assert found[:-1] == without[:-1]
    assert found[-1].share == without[-1].share
    before = without[-2].ns if len(without) > 1 else 1
    assert before <= found[-1].ns <= without[-1].ns
    if before <= longest <= without[-1].ns:
        assert abs(found[-1].ns - longest) <= 0.5


def test_the_longest_of_all_rounds_ends_the_line(results, told: list[TrialRecord]) -> None:
    records = [
        record.model_copy(update={"figures": {**(record.figures or {}), "malloc_ns/longest": 6e5 + record.round}})
        for record in told
    ]
    found = data.courses(results.experiment, results.summary, records, WORKLOAD, "malloc")
    rounds = [r.round for r in told if (r.workload, r.configuration, r.status) == (WORKLOAD, "glibc", "ok")]
    assert found["glibc"][-1].ns == 6e5 + max(rounds)


@given(histograms)
def test_shares_only_fall_and_are_never_nothing(calls: dict[int, int]) -> None:
    found = data.course(calls)
    assert all(0 < point.share <= 1 for point in found)
    assert all(one.share >= two.share for one, two in pairwise(found))


def test_no_calls_have_no_course() -> None:
    assert data.course({}) == []


def test_the_calls_of_all_trials_that_count_are_added_up(results, told: list[TrialRecord]) -> None:
    trials = [r for r in told if (r.workload, r.configuration, r.status, r.repeat) == (WORKLOAD, "glibc", "ok", 0)]
    found = data.histogram(told, WORKLOAD, "glibc", "malloc")
    assert found == {end: n * len(trials) for end, n in {8: 900, 64: 90, 1024: 9, 1 << 20: 1}.items()}
    assert data.histogram(told, WORKLOAD, "tbb", "malloc") == {}, "it failed"
    assert data.histogram(told, "another", "glibc", "malloc") == {}
    everybody = data.histogram(told, WORKLOAD, None, "nothing")
    assert everybody[64] > data.histogram(told, WORKLOAD, "glibc", "nothing")[64]


@pytest.mark.parametrize(
    ("share", "words"),
    [(1, "all"), (0.9999, "all"), (0.1, "1 in 10"), (0.0004, "1 in 2,500"), (1e-6, "1 in 1,000,000")],
)
def test_a_share_in_words(share: float, words: str) -> None:
    assert data.one_in(share) == words
