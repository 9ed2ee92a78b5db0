"""The cost by size on the page: panels, words for the axis, numbers."""

from __future__ import annotations

from freestone.records.schema import TrialRecord
from freestone.reports import html
from freestone.reports.page import experiment_part


def told(records: list[TrialRecord], figures: dict[str, float]) -> list[TrialRecord]:
    return [each.model_copy(update={"figures": figures}) for each in records]


def test_each_course_is_a_figure_with_its_numbers(results) -> None:
    figures = {"malloc_ns/8": 4.0, "malloc_free_ns/8": 7.0, "calloc_ns/8": 5.0, "calloc_ns/64": 6.0, "floor_ns": 0.5}
    records = told(results.records, figures)
    part = experiment_part(results.experiment, results.summary, records, anchor="only")
    pair, zeroed = part.workloads[0].multiples
    assert [pair.title, zeroed.title] == ["malloc and free, by size", "calloc, by size"]
    assert {panel.name.text for panel in pair.panels} == {"glibc", "freestone", "mimalloc", "tcmalloc"}
    assert pair.numbers.rows == [["8 B", *(["4.00 ns, with free 7.00 ns"] * 4)]]
    assert [row[0] for row in zeroed.numbers.rows] == ["8 B", "64 B"]
    assert "all bars stand on 1 ns" in pair.caption
    assert "The empty loop, 0.500 ns" in pair.caption
    assert "light part" in pair.caption
    assert "light part" not in zeroed.caption
    page = html.render([part])
    assert "malloc and free, by size</h3>" in page


def test_a_size_that_one_configuration_lacks_is_a_gap(results) -> None:
    records = [
        each.model_copy(
            update={"figures": {"calloc_ns/8": 5.0} | ({"calloc_ns/64": 9.0} if each.configuration == "glibc" else {})}
        )
        for each in results.records
    ]
    (only,) = experiment_part(results.experiment, results.summary, records, anchor="x").workloads[0].multiples
    place = only.numbers.columns.index("mimalloc")
    assert [row[place] for row in only.numbers.rows] == ["5.00 ns", "–"]


def test_other_workloads_have_none(results) -> None:
    part = experiment_part(results.experiment, results.summary, results.records, anchor="only")
    assert part.workloads[0].multiples == []
