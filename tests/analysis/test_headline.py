"""What the first line claims, for whatever ratios a table has: who has the fewest faults, and how it is written."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from freestone.analysis import headline
from freestone.analysis.rivals import Rivals
from freestone.records.schema import Cell, Experiment, Ratio

MakeExperiment = Callable[..., Experiment]
NAMES = ("freestone", "jemalloc", "mimalloc")


@st.composite
def ratios(draw: st.DrawFn) -> Ratio:
    """Any ratio as the statistics make them: different where its interval leaves out 1."""
    low, value, high = sorted(draw(st.lists(st.floats(0.01, 100), min_size=3, max_size=3)))
    return ratio(low, value, high)


def ratio(low: float, value: float, high: float) -> Ratio:
    return Ratio(value=value, low=low, high=high, pairs=9, different=low > 1 or high < 1)


FEWER, LEVEL, MORE = ratio(0.4, 0.5, 0.6), ratio(0.9, 0.98, 1.1), ratio(1.1, 1.2, 1.3)


def said(experiment: Experiment, metric: str, found: dict[str, Ratio]) -> str:
    """The headline over one quantity, in which the baseline and others were measured."""
    cells = [
        Cell(
            workload="work",
            configuration=name,
            status="ok",
            trials_ok=9,
            trials_total=9,
            ratio={metric: found[name]} if name in found else {},
        )
        for name in ("glibc", *found)
    ]
    return headline.sentence(experiment, cells, Rivals(experiment, {}), 9, {})


@given(st.lists(ratios(), min_size=1, max_size=3))
@example([MORE, LEVEL])
@example([FEWER, ratio(0.55, 0.6, 0.7), MORE])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nobody_is_called_the_fewest_beside_one_that_is_not_told_apart(
    make_experiment: MakeExperiment, drawn: list[Ratio]
) -> None:
    """The baseline was, as soon as anybody had more than it, above a table in which another had fewer."""
    found = dict(zip(NAMES, drawn, strict=False))
    sentence = said(make_experiment(("glibc", *found)), "minor_faults", found)
    if sentence.startswith("No difference seen"):
        assert not any(each.different for each in drawn)
        return
    intervals = {"glibc": (1.0, 1.0)} | {name: (each.low, each.high) for name, each in found.items()}
    claim = sentence.replace("× glibc", "×")
    named = [name for name in intervals if name in claim]
    for other in set(intervals) - set(named):
        assert any(intervals[other][0] > intervals[name][1] for name in named), sentence


@pytest.mark.parametrize(
    ("drawn", "claim"),
    [
        ([MORE], "Page faults: glibc has the fewest."),
        ([MORE, LEVEL], "Fewest page faults: glibc and jemalloc (no difference seen)."),
        ([FEWER, MORE], "Fewest page faults: freestone 0.50× glibc."),
        (
            [FEWER, LEVEL, ratio(0.55, 0.6, 0.7)],
            "Fewest page faults: freestone 0.50× glibc (mimalloc not told apart from it).",
        ),
    ],
)
def test_who_may_have_as_few_is_named_too(make_experiment: MakeExperiment, drawn: list[Ratio], claim: str) -> None:
    found = dict(zip(NAMES, drawn, strict=False))
    assert said(make_experiment(("glibc", *found)), "minor_faults", found) == claim


@given(ratios(), st.sampled_from(["wall_s", "peak_rss_kib", "minor_faults"]))
@example(ratio(0.72, 0.85, 0.998), "wall_s")
@example(ratio(0.9996, 0.9997, 0.9998), "minor_faults")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_number_of_a_real_difference_reads_as_1(make_experiment: MakeExperiment, drawn: Ratio, metric: str) -> None:
    assume(drawn.different)
    sentence = said(make_experiment(("glibc", "freestone")), metric, {"freestone": drawn})
    assert not re.search(r"\b1(\.0+)?(?![\d.])", sentence), sentence
