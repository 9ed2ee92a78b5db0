"""The latency of single calls on the page: three figures, their words and their numbers."""

from __future__ import annotations

import pytest

from freestone.records.schema import TrialRecord
from freestone.reports import html, pictures
from freestone.reports.page import ExperimentPart, experiment_part
from freestone.reports.tails import numbers as tails_numbers

FIGURES = {
    "malloc_and_write_calls/32": 1000.0,
    "malloc_and_write_ns/median": 20.0,
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
    written, malloc, free = part.workloads[0].figures[:3]
    assert [each.title for each in (written, malloc, free)] == [
        "malloc and the first write, call by call",
        "malloc alone, call by call",
        "free, call by call",
    ]
    assert {row[2] for row in written.numbers.rows} == {"20 ns"}
    assert "with the first write of the block's first word" in written.caption
    assert "without the first write" in malloc.caption
    assert malloc.numbers.columns == ["", "calls", "median", "99.9 %", "99.99 %", "longest", "longest of all rounds"]
    rows = {row[0]: row[1:] for row in malloc.numbers.rows}
    assert set(rows) == {"glibc", "freestone", "mimalloc", "tcmalloc"}
    assert rows["freestone"] == ["10,000", "12 ns", "1.5 µs", "2 µs", "2 µs", "2.01 µs"]
    assert {row[-1] for row in free.numbers.rows} == {"–"}, "what was not told is a gap"
    assert "longest of all: " in malloc.alternative
    assert "malloc alone, call by call" in html.render([part])


def test_no_call_stands_beside_the_allocators(results) -> None:
    said = {"nothing_calls/8": 99.0, "nothing_calls/4194304": 1.0, "nothing_ns/median": 2.0, "nothing_ns/longest": 3e6}
    records = [record.model_copy(update={"figures": (record.figures or {}) | said}) for record in told(results)]
    for figure in part_of(results, records).workloads[0].figures[:3]:
        *allocators, nothing = figure.numbers.rows
        assert (nothing[0], nothing[2], nothing[-1]) == ("no call", "2 ns", "3 ms")
        assert "no call" not in {row[0] for row in allocators}
        assert "the machine's own pauses" in figure.caption


@pytest.mark.parametrize("width", [60, 100, 160])
def test_a_terminal_is_told_the_median_and_the_longest(results, width: int) -> None:
    said = {"nothing_calls/8": 99.0, "nothing_ns/median": 2.0, "nothing_ns/longest": 3e6, "clock_step_ns": 15.0}
    records = [record.model_copy(update={"figures": (record.figures or {}) | said}) for record in told(results)]
    for plain in (False, True):
        text = tails_numbers.render(
            results.experiment, results.summary, records, width=width, colour=False, ascii_only=plain
        )
        assert " ".join(text.split()).startswith("json-sqlite: malloc with the first write of its block, and free")
        assert all(len(line) <= width for line in text.splitlines())
        assert text.isascii() or not plain
        assert ("20 ns +- 15 ns" if plain else "20 ns ± 15 ns") in text
        for name in ("glibc", "freestone", "no call", "median", "99.9 %", "longest", "3 ms"):
            assert name in text


def test_a_terminal_is_told_nothing_of_other_workloads(results) -> None:
    assert tails_numbers.render(results.experiment, results.summary, results.records, width=100, colour=False) == ""


def test_they_leave_the_report_as_pictures(results, tmp_path) -> None:
    written = pictures.write(part_of(results, told(results)), tmp_path, "svg")
    names = {f"json-sqlite.{deed}-call-by-call.svg" for deed in ("malloc-and-the-first-write", "malloc-alone", "free")}
    assert names <= {p.name for p in written}


def test_a_record_without_the_write_has_the_bare_call_alone(results) -> None:
    figures = {key: value for key, value in FIGURES.items() if not key.startswith("malloc_and_write")}
    records = [record.model_copy(update={"figures": figures}) for record in results.records]
    titles = [figure.title for figure in part_of(results, records).workloads[0].figures]
    assert [title for title in titles if "call by call" in title] == [
        "malloc alone, call by call",
        "free, call by call",
    ]


def test_other_workloads_have_none(results) -> None:
    assert not [f for f in part_of(results, results.records).workloads[0].figures if "call by call" in f.title]
