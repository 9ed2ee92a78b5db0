"""Machines side by side, as a reader sees them: kinds first, single machines one click away, and found by name."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

from invented_machines import estimate, there
from opened_page import Opened

from freestone.analysis.across import across
from freestone.reports import html
from freestone.reports.across import MOST_NAMED, sentences, tables

MACHINES = 1000
KINDS = ("EPYC", "Xeon", "Neoverse-V2", "Neoverse-N1", "Raspberry Pi 5")
OPENS_MS = 5000


def _fleet() -> list[Any]:
    source = random.Random(1)
    return [
        there(
            f"m{number:04}",
            {"freestone": estimate(0.85 + source.uniform(0, 0.01)), "jemalloc": estimate(0.8 if number % 5 else 1.2)},
            ("jemalloc" if number % 5 else "freestone") if number % 50 else None,
            cpu=KINDS[number % 5],
        )
        for number in range(MACHINES)
    ]


def test_a_row_for_each_kind_counts_its_machines_and_has_no_ratio_of_its_own() -> None:
    (table,) = tables(across(_fleet()))
    rows = {row[0].text: [piece.text for piece in row[1:]] for row in table.table.rows}
    assert rows["Xeon"][:2] == ["200", "jemalloc on 200 ×0.80"]
    assert rows["EPYC"][1].startswith("freestone on 180 ×0.85 to 0.86; – on 20")
    assert sum(len(kind.rows) for kind in table.kinds) == MACHINES


def test_a_ranking_that_changes_says_how_many_of_each_kind() -> None:
    (found,) = across(_fleet())
    (turn,) = [sentence for sentence in sentences(found) if sentence.startswith("The ranking")]
    assert turn.endswith("and more on 200 of 200 EPYC.")
    assert "200 of 200 Xeon" in turn


def test_many_names_are_a_number() -> None:
    unlike = [there(f"m{n}", {"x": estimate(0.8 if n % 2 else 1.2)}) for n in range(4 * MOST_NAMED)]
    (found,) = across(unlike)
    turn = next(sentence for sentence in sentences(found) if sentence.startswith("The ranking"))
    assert f"m15 and {MOST_NAMED} more machines" in turn


def test_places_that_are_one_machine_are_not_counted_as_several() -> None:
    again = [replace(each, place=f"{each.place}-again") for each in _fleet()[:2]]
    (table,) = tables(across([*_fleet()[:2], *again]))
    assert table.table.title == "work in 4 results of 2 machines"
    assert table.table.heads[1] == "best in time", "no row counts machines of a kind: one would count twice"
    once_more = [sentence for sentence in table.sentences if "are one machine, measured more than once" in sentence]
    assert len(once_more) == 2
    assert not any("from one machine to another" in sentence for sentence in table.sentences)
    unlike = [there(name, {"x": estimate(0.8)}, "x") for name in ("a", "b")]
    assert "No ranking is seen to change from one machine to another." in sentences(across(unlike)[0])


def test_a_thousand_machines_open_folded_and_are_found_by_name(browser: Any, tmp_path: Path) -> None:
    page = html.write_machines(tables(across(_fleet())), MACHINES, tmp_path / "report.html", Path("results/order"))
    opened = Opened(browser, page)
    loaded = opened.page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    assert 0 < loaded < OPENS_MS
    assert opened.page.locator("h1").inner_text() == "1,000 machines"
    assert opened.page.locator("tr:visible").count() == 1 + len(KINDS), "a screen, and no list of a thousand"
    opened.page.locator("summary", has_text="Xeon").click()
    assert opened.page.locator("tr:visible").count() == 2 + len(KINDS) + 200
    opened.page.fill(".search input", "M0123")
    assert opened.page.locator("details.machines tbody tr:visible").all_inner_texts()[0].startswith("m0123")
    assert opened.page.locator("details.machines:visible").count() == 1
    assert opened.page.locator(".search output").inner_text() == "1 machine"
    opened.page.fill(".search input", "")
    assert opened.page.locator("details.machines:visible").count() == len(KINDS)
    assert opened.complaints == []
    assert opened.requests == []
