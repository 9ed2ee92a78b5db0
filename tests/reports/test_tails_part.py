"""The latency of single calls on the page: two figures, their words and their numbers."""

from __future__ import annotations

from freestone.records.schema import TrialRecord
from freestone.reports import export, html
from freestone.reports.page import ExperimentPart, experiment_part

FIGURES = {
    "malloc_calls/16": 998.0,
    "malloc_calls/2048": 2.0,
    "malloc_ns/median": 12.0,
    "malloc_ns/p99.9": 1500.0,
    "malloc_ns/p99.99": 2000.0,
    "free_calls/8": 1000.0,
    "free_ns/median": 5.0,
}


def part_of(results, records: list[TrialRecord]) -> ExperimentPart:
    return experiment_part(results.experiment, results.summary, records, anchor="only")


def told(results) -> list[TrialRecord]:
    return [
        record.model_copy(update={"figures": FIGURES | {"malloc_ns/longest": 2000.0 + record.round}})
        for record in results.records
    ]


def test_malloc_and_free_are_figures_with_their_numbers(results) -> None:
    part = part_of(results, told(results))
    malloc, free = part.workloads[0].figures[:2]
    assert [malloc.title, free.title] == ["malloc, call by call", "free, call by call"]
    assert malloc.numbers.columns == ["", "calls", "median", "99.9 %", "99.99 %", "longest", "longest of all rounds"]
    rows = {row[0]: row[1:] for row in malloc.numbers.rows}
    assert set(rows) == {"glibc", "freestone", "mimalloc", "tcmalloc"}
    assert rows["freestone"] == ["10,000", "12 ns", "1.5 µs", "2 µs", "2 µs", "2.01 µs"]
    assert {row[-1] for row in free.numbers.rows} == {"–"}, "what was not told is a gap"
    assert "longest of all: " in malloc.alternative
    assert "malloc, call by call" in html.render([part])


def test_they_leave_the_report_as_pictures(results, tmp_path) -> None:
    written = export.pictures(part_of(results, told(results)), tmp_path, "svg")
    assert {"json-sqlite.malloc-call-by-call.svg", "json-sqlite.free-call-by-call.svg"} <= {p.name for p in written}


def test_other_workloads_have_none(results) -> None:
    assert not [f for f in part_of(results, results.records).workloads[0].figures if "call by call" in f.title]
