"""Machines side by side, as a reader sees them: kinds first, single machines one click away, and found by name."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented_machines import there, took
from opened_page import Opened

from freestone.analysis.across import LeftOut, across
from freestone.reports import html
from freestone.reports.across import tables
from freestone.reports.across_said import MOST_NAMED, MOST_TURNS, sentences

MACHINES = 1000
KINDS = ("EPYC", "Xeon", "Neoverse-V2", "Neoverse-N1", "Raspberry Pi 5")
OPENS_MS = 5000


def _fleet() -> list[Any]:
    source = random.Random(1)
    return [
        there(
            f"m{number:04}",
            {"freestone": took(0.85 + source.uniform(0, 0.01)), "jemalloc": took(0.8 if number % 5 else 1.2)},
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


@given(st.lists(st.floats(1e-6, 0.99), min_size=2, max_size=4))
def test_no_ratio_of_a_kind_is_written_as_nothing(ratios: list[float]) -> None:
    machines = [
        there(f"m{number}", {"jemalloc": took(each, 0)}, "jemalloc", cpu="EPYC") for number, each in enumerate(ratios)
    ]
    (table,) = tables(across(machines))
    ((_, _, said, *_),) = ([piece.text for piece in row] for row in table.table.rows)
    written = [float(each) for each in said.partition("×")[2].split(" to ")]
    assert min(written) > 0
    assert written == pytest.approx([min(ratios), max(ratios)][: len(written)], rel=0.51, abs=0.0051)


def test_a_ranking_that_changes_says_how_many_of_each_kind() -> None:
    (found,) = across(_fleet())
    turn, of_winners = [sentence for sentence in sentences(found) if sentence.startswith("The ranking")]
    assert of_winners.startswith("The ranking in time changes: freestone takes less than jemalloc on 200 of 200 EPYC, ")
    assert turn.startswith("The ranking in time changes: jemalloc takes less than glibc on ")
    assert turn.endswith("and more on 200 of 200 EPYC.")
    assert "200 of 200 Xeon" in turn


def test_of_many_pairs_that_turn_the_first_have_a_sentence_and_the_others_a_name() -> None:
    names = [f"x{number}" for number in range(6)]
    up, down = (
        {name: took(0.5 + 0.05 * number) for number, name in enumerate(order)} for order in (names, names[::-1])
    )
    (found,) = across([there("a", up, "x0"), there("b", down, "x5")])
    assert len(found.turns) == 15
    said = sentences(found)
    turns = [sentence for sentence in said if sentence.startswith("The ranking")]
    assert len(turns) == MOST_TURNS
    assert turns[0] == "The ranking in time changes: x0 takes less than x5 on a, and more on b."
    (others,) = [sentence for sentence in said if sentence.startswith("So does that of ")]
    assert others.startswith("So does that of x0 and x3; ")
    assert others.endswith(" and 4 more pairs.")


def test_the_ratios_of_a_row_are_of_those_that_say_so() -> None:
    (table,) = tables(
        across(
            [
                there("a", {"freestone": took(0.8), "jemalloc": took(0.9)}, "freestone", cpu="A"),
                there("b", {"freestone": took(0.7), "jemalloc": took(0.6)}, "jemalloc", cpu="A"),
                there("c", {"freestone": took(0.75), "jemalloc": took(0.8)}, "freestone", cpu="A"),
            ]
        )
    )
    assert table.table.rows[0][2].text == "freestone on 2 ×0.75 to 0.80; jemalloc on 1 ×0.60"


def test_who_crashed_is_named_and_who_could_not_be_measured_says_nothing() -> None:
    both = {"freestone": took(0.8), "jemalloc": took(0.9)}
    (table,) = tables(
        across(
            [
                there("a", both, "freestone", cpu="A"),
                there("b", both, "jemalloc", cpu="A", failed={"freestone": "killed by SIGSEGV"}),
                there("c", both, cpu="A", failed={"glibc": "exit status 1"}),
                there("d", {"freestone": [0.8, 0.8]}, cpu="A"),
            ]
        )
    )
    assert table.table.heads == ["kind", "machines", "best in time", "best in peak memory", "no result"]
    assert table.table.rows[0][2].text == (
        "freestone on 1 ×0.80; jemalloc on 1 ×0.90; not measured on 1 (glibc failed); "
        "not measured on 1 (too few rounds)"
    )
    assert table.table.rows[0][4].text == ("freestone on 1 (failed); glibc on 1 (failed); jemalloc on 1 (is not there)")
    assert "freestone failed on b: killed by SIGSEGV." in table.sentences
    assert "glibc failed on c: exit status 1." in table.sentences
    rows = {row[0].text: [piece.text for piece in row[1:]] for row in table.kinds[0].rows}
    assert rows["c"] == ["not measured (glibc failed)", "not measured (glibc failed)", "glibc (failed)"]
    assert rows["a"][2] == ""


def test_of_a_place_that_there_is_nothing_of_nobody_is_best() -> None:
    fleet = [there(name, {"x": took(0.8)}, "x") for name in ("a", "b", "c")]
    assert "x is best in time everywhere." in sentences(across(fleet)[0])
    (found,) = across(fleet, one_order=True, absent=[LeftOut(["gone"], "nothing measured yet")])
    said = sentences(found)
    assert not any("everywhere" in sentence for sentence in said)
    assert "x is best in time on all 3 machines that can tell." in said
    assert "Left out: gone: nothing measured yet." in said
    assert tables([found])[0].table.title == "work on 3 of 4 places"
    few = [*fleet[:2], there("c", {"x": [0.8, 0.8]})]
    assert "x is best in time on both machines that can tell." in sentences(across(few)[0])
    one = [fleet[0], there("c", {"x": [0.8, 0.8]})]
    assert not any("best in time" in sentence or "ranking" in sentence for sentence in sentences(across(one)[0]))


def test_many_names_are_a_number() -> None:
    unlike = [there(f"m{n}", {"x": took(0.8 if n % 2 else 1.2)}) for n in range(4 * MOST_NAMED)]
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
    unlike = [there(name, {"x": took(0.8)}, "x") for name in ("a", "b")]
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
