"""The latency of single calls on the page: three figures, their words and their numbers."""

from __future__ import annotations

from pathlib import Path

from invented_figures import CALLS, with_calls

from freestone.records.schema import TrialRecord
from freestone.reports import html, pictures
from freestone.reports.page import ExperimentPart, experiment_part


def part_of(results, records: list[TrialRecord]) -> ExperimentPart:
    return experiment_part(results.experiment, results.summary, records, anchor="only")


def test_malloc_and_free_are_figures_with_their_numbers(results) -> None:
    part = part_of(results, with_calls(results.records))
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
    records = [
        record.model_copy(update={"figures": (record.figures or {}) | said}) for record in with_calls(results.records)
    ]
    for figure in part_of(results, records).workloads[0].figures[:3]:
        *allocators, nothing = figure.numbers.rows
        assert (nothing[0], nothing[2], nothing[-1]) == ("no call", "2 ns", "3 ms")
        assert "no call" not in {row[0] for row in allocators}
        assert "the machine's own pauses" in figure.caption


def test_they_leave_the_report_as_pictures(results, tmp_path: Path) -> None:
    written = pictures.write(part_of(results, with_calls(results.records)), tmp_path, "svg")
    names = {f"json-sqlite.{deed}-call-by-call.svg" for deed in ("malloc-and-the-first-write", "malloc-alone", "free")}
    assert names <= {p.name for p in written}


def test_a_record_without_the_write_has_the_bare_call_alone(results) -> None:
    figures = {key: value for key, value in CALLS.items() if not key.startswith("malloc_and_write")}
    records = [record.model_copy(update={"figures": figures}) for record in results.records]
    titles = [figure.title for figure in part_of(results, records).workloads[0].figures]
    assert [title for title in titles if "call by call" in title] == [
        "malloc alone, call by call",
        "free, call by call",
    ]


def test_other_workloads_have_none(results) -> None:
    assert not [f for f in part_of(results, results.records).workloads[0].figures if "call by call" in f.title]
