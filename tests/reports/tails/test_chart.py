"""The latency of single calls drawn: one axis for all deeds, every configuration named."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from invented_figures import call_by_call

from freestone.records.schema import TrialRecord
from freestone.reports import vega
from freestone.reports.tails import chart as drawing
from freestone.reports.tails import data
from freestone.reports.theme import DARK, LIGHT, Theme

WORKLOAD = "json-sqlite"


def test_what_is_no_histogram_is_not_drawn(results) -> None:
    other = {"malloc_ns/64": 5.0, "malloc_calls": 7.0, "malloc_calls/some": 8.0, "calloc_calls/64": 9.0}
    records = [record.model_copy(update={"figures": other}) for record in results.records]
    assert data.courses(results.experiment, results.summary, records, WORKLOAD, "malloc") == {}
    assert drawing.draw(results.experiment, results.summary, records, WORKLOAD, "malloc") is None


def test_malloc_and_free_have_the_same_axes(results, told: list[TrialRecord]) -> None:
    scales = []
    for deed in data.DEEDS:
        chart = drawing.draw(results.experiment, results.summary, told, WORKLOAD, deed)
        assert chart is not None
        encodings = [layer["encoding"] for layer in chart.to_dict()["layer"]]
        scales += [[encoding[axis]["scale"] for axis in ("x", "y")] for encoding in encodings]
    assert all(each == scales[0] for each in scales)
    assert [axis["type"] for axis in scales[0]] == ["log", "log"]
    assert scales[0][1]["domain"][0] < 0.001, "the longest call is inside"


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_every_line_is_named_and_the_axes_speak(results, told: list[TrialRecord], tmp_path: Path, theme: Theme) -> None:
    chart = drawing.draw(results.experiment, results.summary, told, WORKLOAD, "malloc")
    assert chart is not None
    root = ElementTree.parse(vega.save_svg(chart, tmp_path / "tails.svg", theme=theme)).getroot()
    words = {"".join(node.itertext()) for node in root.iter() if node.tag.endswith("text")}
    assert {"glibc", "freestone", "mimalloc", "tcmalloc", "10 ns", "1 µs", "1 ms", "all", "1 in 1,000"} <= words
    assert "tbb" not in words


def test_one_bucket_is_enough_for_a_picture(results, tmp_path: Path) -> None:
    records = call_by_call(results.records, malloc={1: 3})
    chart = drawing.draw(results.experiment, results.summary, records, WORKLOAD, "malloc")
    assert chart is not None
    assert vega.save_svg(chart, tmp_path / "one.svg").stat().st_size > 0
