"""The figure of a metric against a parameter: every trial a dot, every line named, axes that suit."""

from __future__ import annotations

import itertools
import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.records.schema import TrialRecord
from freestone.reports import html, parameter_figure, parameter_series, parameter_table, vega
from freestone.reports.page import experiment_part
from freestone.reports.parameter_series import Point, Series, Trials, families
from freestone.reports.theme import LIGHT

NUMBERS = ("1", "2", "16")


@pytest.fixture(scope="module")
def scaled(family_maker: Callable[..., Any]) -> Any:
    return family_maker("server-{threads}", ["server", "--threads", "{threads}"], {"threads": NUMBERS}, operations=1e3)


def series_of(results: Any, records: Sequence[TrialRecord] | None = None) -> list[Series]:
    trials = Trials(results.experiment, results.summary, results.records if records is None else records)
    (family,) = families(results.experiment.workloads)
    return parameter_series.series(trials, results.summary, family)


def drawn(results: Any, series: Series) -> dict[str, Any]:
    return vega.specification(parameter_figure.draw(results.experiment, series), LIGHT)


def words_in(path: Path) -> list[str]:
    return ["".join(node.itertext()) for node in ElementTree.parse(path).getroot().iter() if node.tag.endswith("text")]


def test_every_line_is_named_at_its_end_and_every_trial_is_a_dot(scaled: Any, tmp_path: Path) -> None:
    for number, series in enumerate(series_of(scaled)):
        path = vega.save_svg(parameter_figure.draw(scaled.experiment, series), tmp_path / f"{number}.svg")
        words = words_in(path)
        for name in ("glibc", "freestone", "mimalloc", "tcmalloc", "threads", *NUMBERS):
            assert words.count(name) == 1, (series.title, name)
        (dots,) = (n for n in ElementTree.parse(path).getroot().iter() if "layer_0_marks" in n.get("class", ""))
        assert len(dots) == len(NUMBERS) * 4 * 10, "10 rounds; the baseline's second runs are no trials of it"


def test_what_others_published_stands_beside_it(scaled: Any, tmp_path: Path) -> None:
    time = replace(
        series_of(scaled)[0], is_words=True, reference="lifo", kind="count", published={"hakmem": {1: 1.5, 16: 300.0}}
    )
    document = drawn(scaled, time)
    assert {layer["encoding"]["y"]["scale"]["domain"][1] > 300 for layer in document["layer"]} == {True}
    words = words_in(vega.save_svg(parameter_figure.draw(scaled.experiment, time), tmp_path / "p.svg"))
    assert words.count("hakmem (published)") == 1
    figure = parameter_figure.figure(scaled.experiment, time)
    assert figure.title == "Time of one operation against lifo"
    assert "hollow diamonds were published by others" in figure.caption
    column = figure.numbers.columns.index("hakmem (published)")
    assert [row[column] for row in figure.numbers.rows] == ["1.50", "–", "300.00"]


def test_a_trial_far_from_its_median_is_on_the_axis(scaled: Any) -> None:
    good = next(r for r in scaled.records if r.configuration == "glibc" and r.status == "ok" and not r.repeat)
    slow = good.model_copy(update={"metrics": good.metrics.model_copy(update={"wall_s": 900.0})})
    time = series_of(scaled, [slow if r is good else r for r in scaled.records])[0]
    for layer in drawn(scaled, time)["layer"]:
        assert layer["encoding"]["y"]["scale"]["domain"][1] > 0.9


def test_a_trial_takes_few_bytes_of_the_page(scaled: Any) -> None:
    sizes = [
        len(json.dumps(drawn(scaled, series_of(scaled, [r for r in scaled.records if r.round < rounds])[0])))
        for rounds in (6, 10)
    ]
    assert sizes[1] - sizes[0] < 24 * 4 * len(NUMBERS) * 4


numbers = st.lists(st.integers(0, 1 << 34).map(float), unique=True, min_size=2, max_size=12).map(sorted)


@given(numbers, st.integers(1, 200), st.floats(0.06, 0.5), st.booleans())
def test_trials_stand_right_of_their_value_and_nearer_to_it_than_to_the_next(
    ats: list[float], trials: int, right: float, is_words: bool
) -> None:
    series = Series("t", "s", "size", "time", {at: str(at) for at in ats}, {}, "", is_words)
    across = parameter_figure._across(series, right)
    for number, following in itertools.pairwise([*ats, None]):
        assert number is not None
        here = across.share(number)
        shares = [across.share(place) - here for place in across.beside(number, trials)]
        assert all(first < second for first, second in itertools.pairwise(shares))
        assert shares[0] > 0
        assert here + shares[-1] <= 1
        if following is not None:
            assert shares[-1] < (across.share(following) - here) / 2


def test_axes_are_logarithmic_where_values_lie_far_apart(scaled: Any) -> None:
    steep = [
        r.model_copy(update={"figures": {"operations": 10.0 ** int(r.workload.removeprefix("server-"))}})
        for r in scaled.records
    ]
    scales = []
    for series in (series_of(scaled)[1], series_of(scaled, steep)[0]):
        encoding = drawn(scaled, series)["layer"][1]["encoding"]
        scales.append((encoding["x"]["scale"]["type"], encoding["y"]["scale"].get("type", "linear")))
        assert encoding["y"]["scale"]["domain"][0] == 0 or scales[-1][1] == "log"
    assert scales == [("log", "linear"), ("log", "log")]


def test_no_line_leads_over_a_value_without_a_result(family_maker: Callable[..., Any]) -> None:
    whole = family_maker("l-{n}", ["loop", "{n}"], {"n": ("1", "2", "4", "8", "16")}, operations=7.0)
    kept = [r for r in whole.records if (r.workload, r.configuration) != ("l-4", "mimalloc")]
    document = drawn(whole, series_of(whole, kept)[0])
    (line,) = (layer for layer in document["layer"] if layer["mark"]["type"] == "line")
    assert line["encoding"]["detail"]["field"] == "run"
    runs: dict[str, list[tuple[float, int]]] = {}
    for row in document["datasets"][line["data"]["name"]]:
        runs.setdefault(row["configuration"], []).append((row["at"], row["run"]))
    assert runs["mimalloc"] == [(1, 0), (2, 0), (8, 1), (16, 1)]
    assert {run for _, run in runs["freestone"]} == {0}


def test_captions_say_what_the_bars_are(scaled: Any) -> None:
    whole = parameter_table.caption(series_of(scaled)[0])
    assert "divided by all operations" in whole
    assert "bars are 95 % intervals; dots are single trials, later rounds farther right" in whole
    few = parameter_table.caption(series_of(scaled, [r for r in scaled.records if r.round < 3])[0])
    assert "bars are 95 % intervals, of too few rounds from the smallest to the largest" in few


def test_a_ratio_that_differs_from_1_is_never_rounded_to_it() -> None:
    ratios = Series("t", "s", "order", "count", {1: "fifo"}, {}, "", is_words=True, reference="lifo")
    assert parameter_table.cell(ratios, Point(1.004, 1.001, 1.007)) == "1.004 [1.001, 1.01]"
    assert parameter_table.cell(ratios, Point(1.004, 0.99, 1.02)) == "1.00 [0.99, 1.02]"
    assert parameter_table.cell(ratios, Point(0.00073, 0.00073, 0.00073)) == "0.00073", "nor to 0"


def test_they_stand_on_the_page(scaled: Any, results: Any) -> None:
    part = experiment_part(scaled.experiment, scaled.summary, scaled.records, anchor="only")
    (family,) = part.parameters
    assert (family.name, family.parameter, family.values) == ("server-…", "threads", list(NUMBERS))
    rows = family.figures[0].numbers.rows
    assert [row[0] for row in rows] == list(NUMBERS)
    assert all("[" in cell for row in rows for cell in row[1:])
    assert "freestone from" in family.figures[0].alternative
    assert "<h2>By parameter</h2>" in html.render([part])
    alone = experiment_part(results.experiment, results.summary, results.records, anchor="only")
    assert "<h2>By parameter</h2>" not in html.render([alone])


@pytest.mark.parametrize("width", [60, 100, 160])
def test_a_terminal_is_told_the_percentiles(results: Any, width: int) -> None:
    said = {f"{deed}_ns/{each}": 20.0 for deed in ("malloc_and_write", "free") for each in ("median", "p99.9")}
    said |= {"calloc_ns/8": 5.0, "calloc_ns/64": 7.0}
    records = [record.model_copy(update={"figures": said}) for record in results.records]
    trials = Trials(results.experiment, results.summary, records)
    for plain in (False, True):
        text = parameter_table.text(trials, results.summary, width=width, colour=False, ascii_only=plain)
        assert text.startswith("json-sqlite: single calls")
        assert all(len(line) <= width for line in text.splitlines())
        assert text.isascii() or not plain
        for word in ("glibc", "freestone", "malloc and write, median", "free, 99.9 %", "20 ns"):
            assert word in text
        assert "calloc" not in text, "sizes are for the page"
    nothing = Trials(results.experiment, results.summary, results.records)
    assert parameter_table.text(nothing, results.summary, width=100, colour=False) == ""
