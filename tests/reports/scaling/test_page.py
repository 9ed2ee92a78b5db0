"""Families on the page: what is drawn, and the words for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from freestone.records.schema import TrialRecord
from freestone.reports import html
from freestone.reports.page import experiment_part
from freestone.reports.scaling import page as scaling_page

NUMBERS = ("64", "4K", "1M")


@pytest.fixture(scope="module")
def scaled(family_maker: Callable[..., Any]) -> Any:
    return family_maker("loop-{}-all", ["span-loop", "--size", "{}"], NUMBERS, operations=500.0)


def parts(results: Any, records: list[TrialRecord] | None = None) -> list[scaling_page.FamilyPart]:
    return scaling_page.parts(results.experiment, results.summary, results.records if records is None else records)


def test_a_family_has_time_memory_and_faults_with_their_numbers(scaled: Any) -> None:
    (family,) = parts(scaled)
    assert (family.name, family.axis, family.members) == ("loop-…-all", "size", ["64 B", "4 KiB", "1 MiB"])
    assert [each.title for each in family.figures] == [
        "Time of one operation",
        "Peak RSS",
        "Minor faults of one operation",
    ]
    for figure in family.figures:
        assert figure.numbers.columns == ["size", "glibc", "freestone", "mimalloc", "tcmalloc"]
        assert [row[0] for row in figure.numbers.rows] == family.members
        assert "[" in figure.numbers.rows[0][1]
        assert "bars are 95 % intervals" in figure.caption
        assert "dots beside them are single trials" in figure.caption
    assert "divided by all operations" in family.figures[0].caption
    assert "freestone from" in family.figures[0].alternative


def test_too_few_rounds_for_an_interval_are_said(scaled: Any) -> None:
    (family,) = parts(scaled, [r for r in scaled.records if r.round < 3])
    assert "too few for an interval" in family.figures[0].caption
    few = [r for r in scaled.records if r.round < 3 or r.configuration == "glibc"]
    (family,) = parts(scaled, few)
    assert "of fewer than six rounds" in family.figures[0].caption


def test_a_member_that_one_configuration_lacks_is_a_gap(scaled: Any) -> None:
    (family,) = parts(
        scaled, [r for r in scaled.records if (r.workload, r.configuration) != ("loop-4K-all", "mimalloc")]
    )
    place = family.figures[0].numbers.columns.index("mimalloc")
    assert family.figures[0].numbers.rows[1][place] == "–"


def test_they_stand_on_the_page(scaled: Any, results: Any) -> None:
    part = experiment_part(scaled.experiment, scaled.summary, scaled.records, anchor="only")
    assert [each.name for each in part.scaling] == ["loop-…-all"]
    page = html.render([part])
    assert "<h2>Scaling</h2>" in page
    assert "64 B, 4 KiB, 1 MiB" in page
    alone = experiment_part(results.experiment, results.summary, results.records, anchor="only")
    assert "<h2>Scaling</h2>" not in html.render([alone])
