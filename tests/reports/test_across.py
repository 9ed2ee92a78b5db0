"""Machines side by side, as a reader sees them."""

from __future__ import annotations

from freestone.analysis.across import Across, Row
from freestone.records.schema import CellStatus, Ratio
from freestone.reports.across import tables

RATIO = Ratio(value=0.5, low=0.4, high=0.6, pairs=10, different=True)


def row(name: str, *, machine: str = "", best: str | None = "x", known: bool = True, version: str = "1") -> Row:
    aspects = frozenset({"time", "peak memory"}) if known else frozenset()
    without: dict[str, CellStatus] = {"jemalloc": "invalid"} if name == "c" else {}
    shown = {"time": (best, RATIO)} if best else {}
    return Row(name, machine or name, shown, aspects, without, {"x": version})


def test_each_machine_has_a_row_of_its_own() -> None:
    results = [row("a"), row("b", best=None), row("c", best=None, known=False)]
    (table,) = tables([Across("work", "glibc", results, {"d": "another timeout"})], ["e", "f"])
    assert table.title == "work on 3 machines"
    assert table.heads == ["", "best in time", "best in peak memory", "no result"]
    assert [[piece.text for piece in each] for each in table.rows] == [
        ["a", "x ×0.50 [0.40, 0.60]", "–", ""],
        ["b", "–", "–", ""],
        ["c", "?", "?", "jemalloc (INVALID)"],
    ]
    assert table.note.splitlines() == [
        "×: ratio to glibc on that machine, by its own rounds; –: none is better than it; ?: too few results. "
        "Machines are not pooled.",
        "Left out: d: another timeout.",
        "no results yet: e, f.",
    ]


def test_one_machine_measured_twice_and_other_versions_are_named() -> None:
    results = [row("a", machine="m"), row("b", machine="m"), row("c", version="2")]
    (table,) = tables([Across("work", "glibc", results, {})])
    assert table.title == "work: 3 results of 2 machines"
    assert table.note.splitlines()[1:] == [
        "a, b are one machine, measured more than once.",
        "x is 1 on a and b, 2 on c.",
    ]
