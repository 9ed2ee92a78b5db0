"""Bars by size: on axes that can be compared."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.records.schema import TrialRecord
from freestone.reports import vega
from freestone.reports.sizes import chart as drawing
from freestone.reports.sizes import data

WORKLOAD = "json-sqlite"
PAIR = data.COURSES[0]


def layers(chart: Any) -> list[list[dict[str, Any]]]:
    document = chart.to_dict()
    return [document["datasets"][layer["data"]["name"]] for layer in document["layer"]]


@given(st.lists(st.floats(1e-6, 1e12), min_size=1))
def test_bars_stand_on_the_power_of_ten_below_the_least(values: list[float]) -> None:
    foot = drawing.base(values)
    assert math.isclose(math.log10(foot), round(math.log10(foot)), abs_tol=1e-9)
    assert foot <= min(values) < foot * 10 * (1 + 1e-12)


def test_all_panels_have_the_same_axes(results, told: list[TrialRecord]) -> None:
    panels = drawing.panels(results.experiment, results.summary, told, WORKLOAD, PAIR)
    assert set(panels) == {"glibc", "freestone", "mimalloc", "tcmalloc"}
    scales = [
        [layer["encoding"][axis]["scale"] for axis in ("x", "y")]
        for chart in panels.values()
        for layer in chart.to_dict()["layer"]
    ]
    assert all(each == scales[0] for each in scales)
    assert scales[0][1]["type"] == "log"
    assert scales[0][1]["domain"][0] == 1.0


def test_a_pair_that_took_less_than_malloc_alone_has_a_line_and_no_light_part(results, told: list[TrialRecord]) -> None:
    panels = drawing.panels(results.experiment, results.summary, told, WORKLOAD, PAIR)
    dark, light, line, _, baseline = layers(panels["freestone"])
    assert [row["size"] for row in dark] == [8, 4096, 1 << 30]
    assert [row["size"] for row in light] == [8, 1 << 30]
    assert [row["size"] for row in line] == [4096]
    assert {row["configuration"] for row in baseline} == {"glibc"}
    assert len(layers(panels["glibc"])) == 4, "it is not drawn behind itself"


def test_a_course_is_one_chart_of_panels(results, told: list[TrialRecord], tmp_path: Path) -> None:
    chart = drawing.draw(results.experiment, results.summary, told, WORKLOAD, PAIR)
    assert chart is not None
    root = ElementTree.parse(vega.save_svg(chart, tmp_path / "sizes.svg")).getroot()
    words = {"".join(node.itertext()) for node in root.iter() if node.tag.endswith("text")}
    assert {"glibc", "freestone", "8 B", "4 KiB", "1 GiB", "1 ns", "1 µs", "1 s"} <= words
    assert drawing.draw(results.experiment, results.summary, [], WORKLOAD, PAIR) is None


@pytest.mark.parametrize(("value", "words"), [(0.1, "0.1 ns"), (100, "100 ns"), (1e3, "1 µs"), (1e7, "10 ms")])
def test_powers_of_ten_in_words(value: float, words: str) -> None:
    assert drawing.nanoseconds(value) == words
