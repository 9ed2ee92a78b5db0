"""A difference that was seen reads as one wherever its ratio stands: squares, scoreboard, what changed, the doctor."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from freestone.doctor import words
from freestone.doctor.verdict import Tried
from freestone.records.schema import Cell, Change, Difference, Experiment, Ratio, Summary
from freestone.reports import changes, heatmap

LESS = Ratio(value=0.9996, low=0.9992, high=0.99991, pairs=9, different=True)
SAME = LESS.model_copy(update={"different": False, "high": 1.0004})
READS_AS_ONE = re.compile(r"\b1\.0+(?![\d.])|[+-]?\b0\.0+ %")


def test_in_a_square(make_experiment: Callable[..., Experiment]) -> None:
    for ratio, told in ((LESS, "0.9996"), (SAME, "1.00 ≈")):
        cell = Cell(
            workload="work", configuration="x", status="ok", trials_ok=9, trials_total=9, ratio={"wall_s": ratio}
        )
        summary = Summary(
            experiment="e", baseline="glibc", rounds_complete=9, cells=[cell], noise={}, best={}, headline=""
        )
        (square,) = heatmap.squares(make_experiment(("glibc", "x")), summary, "wall_s")
        assert square.words == told


@pytest.mark.parametrize(("ratio", "low", "high"), [(0.9996, 0.9992, 0.99991), (1.0004, 1.0000001, 1.0006)])
def test_in_what_changed(ratio: float, low: float, high: float) -> None:
    change = Change(
        workload=None,
        configuration="freestone",
        aspect="time",
        ratio=ratio,
        low=low,
        high=high,
        rounds=9,
        verdict="less" if ratio < 1 else "more",
    )
    found = Difference(before="a", after="b", confidence=0.95, changes=[change], apart=[], subjects={}, controls=[])
    text = changes.markdown(found, heading="Changed")
    assert "0.9996" in text or "1.0004" in text
    assert "0.04 % time" in text
    assert READS_AS_ONE.search(text) is None, text


def test_in_what_the_doctor_says() -> None:
    said = words.gains(Tried("freestone", time=LESS, memory=SAME, faults=None), "peak_rss_kib")
    assert said == "time 0.9996×, peak memory the same as far as can be told"
