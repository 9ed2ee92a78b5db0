"""The figures: every raw point, every configuration, nothing invented."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.records.schema import Ratio, Sample
from freestone.reports import figures, pieces, vega
from freestone.reports.figures import memory_over_time, time_and_memory
from freestone.reports.shown import order_of
from freestone.reports.theme import DARK, LIGHT

pytestmark = pytest.mark.long

WORKLOAD = "json-sqlite"


def data_of(document: dict[str, Any]) -> list[list[dict[str, Any]]]:
    return [document["datasets"][layer["data"]["name"]] for layer in document["layer"]]


@pytest.fixture(scope="module")
def drawn(results) -> dict[str, vega.Chart | None]:
    parts = results.experiment, results.summary
    return {
        "points": figures.points(*parts, results.records, WORKLOAD, "wall_s"),
        "memory": figures.points(*parts, results.records, WORKLOAD, "peak_rss_kib"),
        "ratios": figures.ratios(*parts, WORKLOAD, "wall_s"),
        "trade": figures.trade(*parts, WORKLOAD),
        "series": figures.series(*parts, results.records, WORKLOAD, "freestone"),
        "noise": figures.noise(results.summary, WORKLOAD),
        "overview": figures.overview(*parts, results.records, WORKLOAD),
    }


def test_every_figure_is_drawn_without_a_browser(drawn, tmp_path: Path) -> None:
    for name, chart in drawn.items():
        assert chart is not None, name
        svg = vega.save_svg(chart, tmp_path / f"{name}.svg")
        root = ElementTree.parse(svg).getroot()
        marks = [node for node in root.iter() if "mark-" in node.get("class", "") and len(node) > 0]
        assert marks, name
        png = vega.save_png(chart, tmp_path / f"{name}.png", scale=1)
        assert png.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("key", ["wall_s", "peak_rss_kib", "minor_faults"])
def test_every_raw_point_of_a_valid_trial_is_drawn_and_no_other(results, key: str) -> None:
    chart = figures.points(results.experiment, results.summary, results.records, WORKLOAD, key)
    dots = data_of(chart.to_dict())[0]
    expected = [r for r in results.records if r.status == "ok" and r.repeat == 0]
    assert len(dots) == len(expected)
    assert {dot["configuration"] for dot in dots} == {"glibc", "freestone", "mimalloc", "tcmalloc"}


def test_a_configuration_without_a_result_keeps_its_row_in_words(results) -> None:
    for chart in (
        figures.points(results.experiment, results.summary, results.records, WORKLOAD, "wall_s"),
        figures.ratios(results.experiment, results.summary, WORKLOAD, "wall_s"),
    ):
        layers = data_of(chart.to_dict())
        absent = {row["configuration"]: row["label"] for row in layers[-1]}
        assert absent == {"jemalloc": "INVALID", "tbb": "failed"}
        for layer in layers[:-1]:
            assert not {"jemalloc", "tbb"} & {row.get("configuration") for row in layer}


def test_the_fastest_comes_first_and_what_failed_last(results) -> None:
    order = order_of(results.experiment, results.summary, WORKLOAD)
    assert order == ["freestone", "mimalloc", "tcmalloc", "glibc", "jemalloc", "tbb"]


def test_a_colour_belongs_to_a_configuration_in_every_figure(results, drawn) -> None:
    order = ["glibc", "freestone", "mimalloc", "jemalloc", "tcmalloc", "tbb"]
    assert pieces.colour_order(results.experiment) == order
    for name in ("points", "memory", "ratios", "trade", "series"):
        layers = drawn[name].to_dict()["layer"]
        domains = [layer["encoding"]["color"]["scale"]["domain"] for layer in layers if "color" in layer["encoding"]]
        assert domains
        assert all(domain == order for domain in domains)


def test_the_front_is_what_nothing_beats_in_both(results) -> None:
    rows = [
        {"configuration": name, "x": x, "y": y}
        for name, x, y in [("a", 1.0, 1.0), ("b", 0.8, 1.2), ("c", 0.9, 0.9), ("d", 1.1, 0.7), ("e", 1.2, 0.8)]
    ]
    front = time_and_memory._front(rows)
    assert [(row["x"], row["y"]) for row in front] == [(0.8, 1.2), (0.9, 0.9), (1.1, 0.7)]


def test_ratios_far_apart_are_drawn_logarithmically(results) -> None:
    parts = results.experiment, results.summary, WORKLOAD
    near = figures.trade(*parts).to_dict()["layer"][0]["encoding"]["x"]["scale"]
    cells = [
        cell.model_copy(update={"ratio": {key: _times(ratio, 50.0) for key, ratio in cell.ratio.items()}})
        if cell.configuration == "mimalloc"
        else cell
        for cell in results.summary.cells
    ]
    wide = figures.trade(results.experiment, results.summary.model_copy(update={"cells": cells}), WORKLOAD)
    scale = wide.to_dict()["layer"][0]["encoding"]["x"]["scale"]
    assert (near.get("type"), scale["type"]) == (None, "log")
    assert scale["domain"][0] < 1 < 40 < scale["domain"][1]


def _times(ratio: Ratio, factor: float) -> Ratio:
    return ratio.model_copy(update={end: getattr(ratio, end) * factor for end in ("value", "low", "high")})


samples = st.lists(
    st.tuples(st.floats(0, 100), st.integers(0, 10**7)).map(lambda p: Sample(at_s=p[0], rss_kib=p[1], processes=1)),
    min_size=1,
    max_size=300,
)


@given(samples, st.integers(3, 50))
def test_thinning_keeps_the_ends_and_the_peak(track: list[Sample], points: int) -> None:
    kept = memory_over_time.thinned(track, points)
    assert len(kept) <= max(points, 3)
    assert kept[0] == track[0]
    assert kept[-1] == track[-1]
    assert max(s.rss_kib for s in kept) == max(s.rss_kib for s in track)


def test_series_panels_share_their_axes(results) -> None:
    parts = results.experiment, results.summary, results.records, WORKLOAD
    scales = []
    for name in ("freestone", "glibc", "mimalloc"):
        chart = figures.series(*parts, name)
        assert chart is not None
        encodings = chart.to_dict()["layer"][-1]["encoding"]
        scales.append([encodings[axis]["scale"]["domain"] for axis in ("x", "y")])
    assert scales[0] == scales[1] == scales[2]


def test_a_configuration_without_a_series_has_no_panel(results) -> None:
    parts = results.experiment, results.summary
    assert figures.series(*parts, results.records, WORKLOAD, "jemalloc") is None
    assert figures.series(*parts, [], WORKLOAD, "glibc") is None


def test_figures_of_nothing_are_empty_and_not_errors(results, tmp_path: Path) -> None:
    bad = [cell.model_copy(update={"status": "failed", "ratio": {}, "median": {}}) for cell in results.summary.cells]
    summary = results.summary.model_copy(update={"cells": bad, "noise": {}})
    assert figures.noise(summary, WORKLOAD) is None
    for chart in (
        figures.points(results.experiment, summary, [], WORKLOAD, "wall_s"),
        figures.ratios(results.experiment, summary, WORKLOAD, "wall_s"),
        figures.trade(results.experiment, summary, WORKLOAD),
    ):
        vega.save_svg(chart, tmp_path / "empty.svg")


def test_themes_change_colours_and_nothing_else(drawn) -> None:
    light = vega.specification(drawn["points"], LIGHT)
    dark = vega.specification(drawn["points"], DARK)
    assert light["config"]["background"] != dark["config"]["background"]
    del light["config"], dark["config"]
    assert light == dark


def test_unchecked_documents_are_what_altair_says(drawn) -> None:
    for name, chart in drawn.items():
        checked = vega.specification(chart, LIGHT)
        with vega.unchecked():
            assert vega.specification(chart, LIGHT) == checked, name
