"""A quantity over threads, sizes and live blocks: what is held against what."""

from __future__ import annotations

import statistics
from typing import Any

import pytest

from freestone.records.schema import TrialRecord
from freestone.reports.families import Family
from freestone.reports.scaling import chart as drawing
from freestone.reports.scaling import data


def of(results: Any, records: list[TrialRecord] | None = None) -> tuple[Any, Any, list[TrialRecord]]:
    return results.experiment, results.summary, results.records if records is None else records


def test_time_and_faults_are_those_of_one_operation(scaled: Any, family: Family) -> None:
    time, memory, faults = (data.lines(*of(scaled), family, measure) for measure in data.MEASURES)
    mine = [
        r.metrics
        for r in scaled.records
        if (r.workload, r.configuration, r.repeat) == ("server-2", "freestone", 0) and r.metrics
    ]
    (point,) = (each for each in time["freestone"] if each.at == 2)
    assert point.median == pytest.approx(statistics.median(m.wall_s for m in mine) / 1000)
    assert point.trials == pytest.approx(tuple(m.wall_s / 1000 for m in mine))
    assert min(m.wall_s for m in mine) / 1000 <= point.low <= point.median <= point.high
    (point,) = (each for each in memory["freestone"] if each.at == 2)
    assert point.median == statistics.median(m.peak_rss_kib or 0 for m in mine)
    (point,) = (each for each in faults["freestone"] if each.at == 2)
    assert point.median == pytest.approx(statistics.median(m.minor_faults or 0 for m in mine) / 1000)


def test_what_failed_has_no_line(scaled: Any, family: Family) -> None:
    assert set(data.lines(*of(scaled), family, "time")) == {"glibc", "freestone", "mimalloc", "tcmalloc"}


def test_unlike_amounts_that_nobody_told_are_not_compared(scaled: Any, family: Family) -> None:
    silent = [r.model_copy(update={"figures": None}) for r in scaled.records]
    whole = data.lines(*of(scaled, silent), family, "time")
    told = data.lines(*of(scaled), family, "time")
    assert whole["glibc"][0].median == pytest.approx(1000 * told["glibc"][0].median)
    unlike = Family(family.axis, family.name, family.members, same_work=False)
    assert data.lines(*of(scaled, silent), unlike, "time") == {}
    assert data.lines(*of(scaled, silent), unlike, "minor_faults") == {}
    assert drawing.draw(*of(scaled, silent), unlike, "time") is None
    assert set(data.lines(*of(scaled, silent), unlike, "peak_rss_kib")) == set(told)


def test_one_trial_that_says_no_amount_is_enough_for_none(scaled: Any, family: Family) -> None:
    records = [scaled.records[0].model_copy(update={"figures": {}, "status": "ok"}), *scaled.records[1:]]
    assert not data.is_by_operation(records, "time")
    assert data.is_by_operation(scaled.records, "time")
    assert not data.is_by_operation(scaled.records, "peak_rss_kib")
    assert not data.is_by_operation([], "time")


@pytest.mark.parametrize(
    ("axis", "number", "words"),
    [
        ("size", 4096, "4 KiB"),
        ("threads", 64, "64"),
        ("live", 1000, "1,000"),
        ("live", 250_000, "250 k"),
        ("live", 10**7, "10 M"),
    ],
)
def test_numbers_on_the_axis(axis: str, number: int, words: str) -> None:
    assert data.number_in_words(Family(axis, "x", (), same_work=True), number) == words
