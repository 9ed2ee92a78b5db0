"""The scoreboard in a terminal and as Markdown: whole, in any width, and with every doubt in words."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from freestone.records.schema import Aspect, LeftOut, Ratio, Score, ScoreRow, Standing
from freestone.reports import grid, scoreboard
from freestone.reports.grid import Grid, Piece


def ratio(value: float, *, different: bool = True, known: bool = True) -> Ratio:
    low, high = (value * 0.99, value * 1.01) if known else (0.0, math.inf)
    return Ratio(value=value, low=low, high=high, pairs=5, different=different)


def row(workload: str, held: Ratio | None, peer: str | None = "mimalloc", *, counted: bool = True) -> ScoreRow:
    return ScoreRow(
        workload=workload,
        counted=counted,
        values={"freestone": 0.5, "mimalloc": 1.0} if held else {"mimalloc": 1.0},
        best_peer=peer,
        ratio=held,
    )


def standing(name: str, mean: float, workloads: int = 3) -> Standing:
    return Standing(configuration=name, mean=mean, worst=2 * mean, worst_workload="b_b", workloads=workloads)


@pytest.fixture
def score() -> Score:
    rows = [row("a", ratio(0.5)), row("b_b", ratio(1.2)), row("tie", ratio(1.0, different=False)), row("gone", None)]
    rows.append(row("aside", ratio(0.7), counted=False))
    aspects = [
        Aspect(
            name=name,
            rows=rows,
            field=[standing("freestone", 1.01), standing("mimalloc", 1.25, workloads=2)],
            mean=ratio(0.9),
            worst=rows[1],
        )
        for name in ("time", "peak RSS", "minor faults", "minor faults, lean", "RSS after idle")
    ]
    left_out = [
        LeftOut(workload=workload, configuration="freestone", status="invalid", reason="static binary")
        for workload in ("gone", "lost")
    ]
    return Score(experiment="one", subject="freestone", rounds_complete=5, aspects=aspects, left_out=left_out)


def test_the_answer_comes_first_and_the_doubts_are_words(score: Score) -> None:
    text = scoreboard.render(score, width=140, colour=False)
    lines = text.splitlines()
    assert lines[0] == "freestone against the best peer of each workload"
    assert "0.900 [0.891, 0.909]" in text
    assert "b_b, against mimalloc" in text
    assert "1.000 ≈" in text
    assert "(0.700)" in text, "not counted"
    assert "1.250 (2)" in text, "on two workloads only"
    assert lines[-1] == "freestone is left out on gone and lost: INVALID: static binary"


def test_too_few_rounds_are_named(score: Score) -> None:
    row = score.aspects[0].rows[0].model_copy(update={"ratio": ratio(0.5, different=False, known=False)})
    aspect = score.aspects[0].model_copy(update={"rows": [row], "mean": row.ratio, "worst": row})
    text = scoreboard.render(score.model_copy(update={"aspects": [aspect]}), width=120, colour=False)
    assert "0.500 ?" in text
    assert "inf" not in text


@given(width=st.integers(20, 300))
def test_no_line_is_wider_than_the_terminal_and_nothing_is_cut(width: int) -> None:
    wide = Grid("title", ["", *"abcdefghij"], [[Piece(f"{r}-{c}") for c in range(11)] for r in range(3)], together=2)
    text = grid.text(wide, width=width, colour=False, ascii_only=False)
    assert all(cell_len(line) <= width for line in text.splitlines())
    for r in range(3):
        for c in range(11):
            assert f"{r}-{c}" in text


def test_ascii_is_ascii(score: Score) -> None:
    scoreboard.render(score, width=100, colour=False, ascii_only=True).encode("ascii")


def test_colour_is_only_there_when_asked_for(score: Score) -> None:
    assert "\x1b[" not in scoreboard.render(score, width=100, colour=False)
    assert "\x1b[" in scoreboard.render(score, width=100, colour=True)


def test_markdown_has_every_peer_and_how_to_repeat_it(score: Score) -> None:
    text = scoreboard.markdown(score, heading="Board", command_line="freestone bench field")
    assert text.startswith("# Board\n")
    assert "    freestone bench field\n" in text
    assert "## Time: freestone's ratio to every peer" in text
    assert "## RSS after idle: freestone's ratio to every peer" in text
    assert "| a | 500 ms | 0.500 | **0.500 [0.495, 0.505]** | mimalloc |" in text
    assert "| b\\_b |" in text
    assert "| aside (not counted) |" in text
    assert "- freestone is left out on gone and lost: INVALID: static binary" in text
    tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    for table in tables:
        assert len({line.replace("\\|", "").count("|") for line in table}) == 1


def test_names_cannot_break_a_table() -> None:
    text = grid.markdown(Grid("t", ["", "x"], [[Piece("a|b *c* `d` <e>\nf"), Piece("1")]]))
    assert "| a\\|b \\*c\\* \\`d\\` \\<e> f | 1 |" in text


def test_a_board_without_figures_says_why() -> None:
    score = Score(
        experiment="one",
        subject="glibc",
        rounds_complete=0,
        aspects=[],
        left_out=[LeftOut(workload="w", configuration="glibc", status="failed", reason="exit status 3")],
    )
    assert scoreboard.render(score, width=80, colour=False).strip() == "glibc is left out on w: failed: exit status 3"
    assert "exit status 3" in scoreboard.markdown(score, heading="h", command_line="c")
