"""The cost of a block by its size: what the trials say."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from invented_figures import by_size

from freestone.records.schema import TrialRecord
from freestone.reports.sizes import data

WORKLOAD = "json-sqlite"
PAIR = data.COURSES[0]


def test_only_what_is_told_by_size_is_drawn(results, told: list[TrialRecord]) -> None:
    assert data.courses(results.records, WORKLOAD) == []
    assert [each.deed for each in data.courses(told, WORKLOAD)] == ["malloc", "calloc"]
    assert data.courses(told, "another") == []
    plain = by_size(results.records[:1], malloc={})
    other = [each.model_copy(update={"figures": {"malloc_ns": 3.0, "malloc_ns/large": 4.0}}) for each in plain]
    assert data.courses(other, WORKLOAD) == []


def test_bars_are_medians_of_the_trials_that_count(results, told: list[TrialRecord]) -> None:
    (first, *_) = data.bars(told, WORKLOAD, "glibc", PAIR)
    rounds = sorted(
        (1 + r.round / 100) for r in told if r.configuration == "glibc" and r.repeat == 0 and r.status == "ok"
    )
    assert first.size == 8
    assert first.deed == pytest.approx(4 * statistics.median(rounds))
    assert first.whole == pytest.approx(7 * statistics.median(rounds))
    assert (first.low, first.high) == pytest.approx((7 * rounds[0], 7 * rounds[-1]))
    assert data.bars(told, WORKLOAD, "tbb", PAIR) == [], "it failed"


costs = st.dictionaries(st.integers(1, 1 << 40), st.floats(-1, 1e12, allow_nan=False), max_size=12)


@settings(deadline=None)
@given(deed=costs, whole=costs)
def test_bars_ascend_and_never_leave_their_trials(results, deed: dict[int, float], whole: dict[int, float]) -> None:
    records = by_size(results.records, malloc=deed, malloc_free=whole)
    found = data.bars(records, WORKLOAD, "freestone", PAIR)
    assert [bar.size for bar in found] == sorted(size for size, value in deed.items() if value > 0)
    for bar in found:
        assert 0 < bar.low <= bar.top <= bar.high
        assert (bar.whole is None) == (whole.get(bar.size, 0) <= 0)
