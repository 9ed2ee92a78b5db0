"""The table in the terminal: the answer first, never too wide, never a number for what was not measured."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from freestone.records.schema import Cell, Ratio, Summary
from freestone.reports import table

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
KEYS = ("wall_s", "user_s", "sys_s", "peak_rss_kib", "end_rss_kib", "minor_faults", "voluntary_switches")


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(20, 200), st.booleans(), st.booleans())
def test_no_summary_is_wider_than_the_terminal(
    summaries: st.SearchStrategy[Summary], data: st.DataObject, width: int, colour: bool, ascii_only: bool
) -> None:
    summary = data.draw(summaries)
    text = table.render(summary, width=width, colour=colour, ascii_only=ascii_only)
    plain = ESCAPE.sub("", text)
    assert all(cell_len(line) <= width for line in plain.split("\n"))
    assert text.endswith("\n")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", plain)
    if not colour:
        assert plain == text
    if ascii_only:
        assert plain.isascii()


@settings(max_examples=40, deadline=None)
@given(st.integers(20, 200), st.sampled_from(["failed", "timeout", "invalid", "unmeasured"]), st.floats(1000, 9999))
def test_what_was_not_measured_is_never_a_number(width: int, status: str, value: float) -> None:
    measured = dict.fromkeys(KEYS, value)
    against = {key: Ratio(value=0.7777, low=0.7771, high=0.7779, pairs=9, different=True) for key in KEYS}
    good = Cell(workload="w", configuration="base", status="ok", trials_ok=3, trials_total=3, median={"wall_s": 1.0})
    bad = Cell.model_validate(
        {"workload": "w", "configuration": "bad", "status": status, "reason": "because", "trials_ok": 0}
        | {"trials_total": 3, "median": measured, "ratio": against}
    )
    summary = Summary(experiment="e", baseline="base", rounds_complete=3, cells=[good, bad], headline="none")
    lines = table.render(summary, width=width, colour=False).splitlines()
    rows = [line for line in lines if "bad" in line]
    assert rows
    assert not any(re.search(r"\d", line) for line in rows)
    text = "\n".join(lines)
    assert "because" in text
    words = {"failed": "failed", "timeout": "timed out", "invalid": "INVALID", "unmeasured": "not measured"}
    assert words[status] in text
    assert "777" not in text


def test_what_no_preload_reaches_stands_below_the_table() -> None:
    good = Cell(workload="w", configuration="base", status="ok", trials_ok=3, trials_total=3, median={"wall_s": 1.0})
    told = "31 % of this program's memory comes from malloc"
    summary = Summary(
        experiment="e", baseline="base", rounds_complete=3, cells=[good], headline="none", notes={"w": [told]}
    )
    assert told in table.render(summary, width=100, colour=False).splitlines()


def test_the_first_line_is_the_answer(results) -> None:
    for width in (40, 80, 160):
        text = table.render(results.summary, width=width, colour=False)
        assert results.summary.headline.startswith(text.splitlines()[0])


def test_every_median_and_ratio_is_shown_at_every_width(results) -> None:
    for width in (30, 40, 60, 80, 100, 130, 200):
        text = table.render(results.summary, width=width, colour=False)
        squeezed = " ".join(text.split())
        for cell in results.summary.cells:
            assert cell.configuration in squeezed
            if cell.status == "ok":
                assert f"{cell.median['minor_faults']:,.0f}" in squeezed
                assert f"{cell.median['wall_s']:.2f}" in squeezed
                if cell.ratio:
                    assert f"{cell.ratio['wall_s'].value:.3f}" in squeezed
                    assert f"×{cell.ratio['end_rss_kib'].value:.2f}" in squeezed


def test_one_table_is_enough_on_a_wide_terminal(results) -> None:
    text = table.render(results.summary, width=160, colour=False)
    assert sum(line.lstrip().startswith("mimalloc ") for line in text.splitlines()) == 1
    assert "15 % faster" in text


def test_columns_are_dealt_over_several_tables_on_a_narrow_one(results) -> None:
    text = table.render(results.summary, width=80, colour=False)
    assert sum(line.lstrip().startswith("mimalloc ") for line in text.splitlines()) == 2


def test_a_difference_that_is_not_real_is_not_given_as_one() -> None:
    same = Ratio(value=0.98, low=0.95, high=1.01, pairs=9, different=False)
    cells = [
        Cell(
            workload="w", configuration="a", status="ok", trials_ok=9, trials_total=9, median={"wall_s": 1, "sys_s": 1}
        ),
        Cell(
            workload="w",
            configuration="b",
            status="ok",
            trials_ok=9,
            trials_total=9,
            median={"wall_s": 0.98, "sys_s": 0.98},
            ratio={"wall_s": same, "sys_s": same},
        ),
    ]
    summary = Summary(experiment="e", baseline="a", rounds_complete=9, cells=cells, headline="a tie")
    text = table.render(summary, width=120, colour=False)
    assert "no difference seen" in text
    assert "≈" in text
    assert "×0.98" not in text
    assert "faster" not in text


def test_a_row_shows_the_figure_that_its_ratio_is_made_of() -> None:
    """The median of a row could say the contrary of its ratio; the geometric mean cannot."""
    against = {"wall_s": Ratio(value=0.9, low=0.89, high=0.91, pairs=9, different=True)}
    counts = {"workload": "w", "status": "ok", "trials_ok": 9, "trials_total": 9}
    cells = [
        Cell.model_validate(counts | {"configuration": "a", "median": {"wall_s": 1.7}, "mean": {"wall_s": 2.0}}),
        Cell.model_validate(
            counts | {"configuration": "b", "median": {"wall_s": 1.9}, "mean": {"wall_s": 1.8}, "ratio": against}
        ),
    ]
    summary = Summary(experiment="e", baseline="a", rounds_complete=9, cells=cells, headline="b")
    text = table.render(summary, width=120, colour=False)
    assert "2.00" in text
    assert "1.80" in text
    assert "1.90" not in text


def test_too_few_rounds_are_not_taken_for_no_difference() -> None:
    unknown = Ratio(value=1.4, low=0, high=math.inf, pairs=2, different=False)
    cells = [
        Cell(
            workload="w",
            configuration=name,
            status="ok",
            trials_ok=2,
            trials_total=2,
            median={"wall_s": 1, "sys_s": 1},
            ratio={} if name == "a" else {"wall_s": unknown, "sys_s": unknown},
        )
        for name in "ab"
    ]
    noise = {"w": {"wall_s": unknown}}
    summary = Summary(experiment="e", baseline="a", rounds_complete=2, cells=cells, headline="too few", noise=noise)
    for width in (30, 120):
        text = table.render(summary, width=width, colour=False)
        assert "too few rounds" in text
        assert "no difference seen" not in text
        assert "inf" not in text.replace("information", "")
        assert "noise, a against" not in text


def test_the_noise_is_told(results) -> None:
    text = table.render(results.summary, width=200, colour=False)
    assert "check, glibc against itself: wall 0.997 [" in text


def test_trials_that_do_not_count_are_told() -> None:
    cell = Cell(
        workload="w",
        configuration="a",
        status="ok",
        trials_ok=8,
        trials_total=10,
        median={"wall_s": 1},
        note="half empty",
    )
    summary = Summary(experiment="e", baseline="a", rounds_complete=10, cells=[cell], headline="h")
    text = table.render(summary, width=80, colour=False)
    assert "a: 8 of 10 trials count" in text
    assert "a: half empty" in text


def test_text_from_outside_cannot_steer_the_terminal() -> None:
    cell = Cell(
        workload="w",
        configuration="[bold]a\x1b[2J",
        status="failed",
        reason="line one\nline two\x07 \u202eback [red]",
        trials_ok=0,
        trials_total=1,
    )
    summary = Summary(experiment="e", baseline="a", rounds_complete=1, cells=[cell], headline="h\x1b]0;title\x07")
    text = table.render(summary, width=100, colour=False)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text
    assert "[bold]a" in text
    assert "line one line two" in text


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}, {"COLUMNS": "10"}, {"TERM": "dumb"}])
def test_the_caller_decides_and_not_the_environment(
    results, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    expected = (
        table.render(results.summary, width=100, colour=True),
        table.render(results.summary, width=100, colour=False),
    )
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    assert expected == (
        table.render(results.summary, width=100, colour=True),
        table.render(results.summary, width=100, colour=False),
    )
    assert "\x1b" in expected[0]


def test_the_trees_peak_is_shown_where_it_tells_more() -> None:
    for tree, shown in ((100_000, False), (300_000, True)):
        median = {"wall_s": 1.0, "peak_rss_kib": 99_000, "tree_peak_rss_kib": tree}
        cell = Cell(workload="w", configuration="a", status="ok", trials_ok=1, trials_total=1, median=median)
        summary = Summary(experiment="e", baseline="a", rounds_complete=1, cells=[cell], headline="h")
        assert ("tree peak" in table.render(summary, width=120, colour=False)) == shown


def test_several_workloads_are_named(results_maker) -> None:
    text = table.render(results_maker(("json-sqlite", "redis")).summary, width=100, colour=False)
    assert "\njson-sqlite\n" in text
    assert "\nredis\n" in text


def test_nothing_measured_at_all_is_still_a_table() -> None:
    cells = [
        Cell(workload="w", configuration=name, status="invalid", reason="static binary", trials_ok=0, trials_total=5)
        for name in ("glibc", "freestone")
    ]
    summary = Summary(
        experiment="e", baseline="glibc", rounds_complete=5, cells=cells, headline="Nothing was measured."
    )
    for width in (20, 80):
        text = " ".join(table.render(summary, width=width, colour=False).split())
        assert "glibc, freestone INVALID: static binary" in text, "one reason, once"
        assert text.startswith("Nothing was measured.")


def test_medians_at_the_edge_of_numbers_have_a_quotient() -> None:
    ratio = Ratio(value=851.0, low=833.0, high=880.0, pairs=9, different=True)
    base = Cell(workload="w", configuration="base", status="ok", trials_ok=9, trials_total=9, median={"wall_s": 851.0})
    least = base.model_copy(update={"configuration": "least", "median": {"wall_s": 5e-324}, "ratio": {"wall_s": ratio}})
    summary = Summary(experiment="e", baseline="base", rounds_complete=9, cells=[base, least], headline="none")
    assert "least" in table.render(summary, width=100, colour=False)


def test_requests_per_second_agree_with_the_time_above() -> None:
    figures = {
        "median": {"figure:seconds": 0.5, "figure:rss_kib_loaded": 9.0},
        "mean": {"figure:seconds": 0.01},
    }
    cell = Cell.model_validate(
        {"workload": "w", "configuration": "base", "status": "ok", "trials_ok": 3, "trials_total": 3} | figures
    )
    summary = Summary(experiment="e", baseline="base", rounds_complete=3, cells=[cell], headline="none")
    assert "per second: base 100" in " ".join(table.render(summary, width=120, colour=False).split())


def test_where_nothing_was_measured_the_reason_stands_once_and_no_interval_is_spoken_of() -> None:
    cells = [
        Cell(workload="w", configuration=name, status="failed", reason="exit status 5", trials_ok=0, trials_total=3)
        for name in ("base", "other")
    ]
    said = "Nothing could be measured: exit status 5."
    summary = Summary(experiment="e", baseline="base", rounds_complete=3, cells=cells, headline=said)
    text = table.render(summary, width=120, colour=False)
    assert text.count("exit status 5") == 1
    assert "failed" in text
    assert "19 of 20" not in text
    mixed = [cells[0], cells[1].model_copy(update={"reason": "killed"})]
    text = table.render(summary.model_copy(update={"cells": mixed}), width=120, colour=False)
    assert "base failed: exit status 5" in text
    assert "other failed: killed" in text
