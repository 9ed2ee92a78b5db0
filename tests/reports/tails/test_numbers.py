"""The latency of single calls in numbers, for the page and for a terminal."""

from __future__ import annotations

import pytest
from invented_figures import with_calls

from freestone.records.schema import TrialRecord
from freestone.reports.tails import numbers

WORKLOAD = "json-sqlite"


@pytest.mark.parametrize("width", [60, 100, 160])
def test_a_terminal_is_told_the_median_and_the_longest(results, width: int) -> None:
    said = {"nothing_calls/8": 99.0, "nothing_ns/median": 2.0, "nothing_ns/longest": 3e6, "clock_step_ns": 15.0}
    records = [
        record.model_copy(update={"figures": (record.figures or {}) | said}) for record in with_calls(results.records)
    ]
    for plain in (False, True):
        text = numbers.render(results.experiment, results.summary, records, width=width, colour=False, ascii_only=plain)
        assert " ".join(text.split()).startswith("json-sqlite: malloc with the first write of its block, and free")
        assert all(len(line) <= width for line in text.splitlines())
        assert text.isascii() or not plain
        assert ("20 ns +- 15 ns" if plain else "20 ns ± 15 ns") in text
        for name in ("glibc", "freestone", "no call", "median", "99.9 %", "longest", "3 ms"):
            assert name in text


def test_a_terminal_is_told_nothing_of_other_workloads(results) -> None:
    assert numbers.render(results.experiment, results.summary, results.records, width=100, colour=False) == ""


def test_a_median_below_the_clocks_step_is_told_as_that(results, told: list[TrialRecord]) -> None:
    said = {"malloc_ns/median": 4.0, "malloc_ns/longest": 900.0, "clock_step_ns": 20.0}
    records = [record.model_copy(update={"figures": {**(record.figures or {}), **said}}) for record in told]
    rows = numbers.table(results.experiment, results.summary, records, WORKLOAD, "malloc").rows
    assert "< 20 ns" in rows[0]
    assert "900 ns" in rows[0]


def test_a_median_below_two_steps_is_told_with_the_step(results, told: list[TrialRecord]) -> None:
    said = {"malloc_ns/median": 30.0, "malloc_ns/p99.9": 40.0, "malloc_ns/longest": 900.0, "clock_step_ns": 20.0}
    records = [record.model_copy(update={"figures": {**(record.figures or {}), **said}}) for record in told]
    rows = numbers.table(results.experiment, results.summary, records, WORKLOAD, "malloc").rows
    assert rows[0][2:4] == ["30 ns ± 20 ns", "40 ns"]
