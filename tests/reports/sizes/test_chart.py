"""Bars by size: what the trials say, on axes that can be compared."""

from __future__ import annotations

import math
import statistics
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freestone.records.schema import TrialRecord
from freestone.reports import vega
from freestone.reports.numerals import bytes_in_words
from freestone.reports.sizes import chart as drawing
from freestone.reports.sizes import data

WORKLOAD = "json-sqlite"
PAIR = data.COURSES[0]


def say(records: list[TrialRecord], **costs: dict[int, float]) -> list[TrialRecord]:
    """The records with figures of a program that tells costs by size; each round a little dearer."""
    return [
        record.model_copy(
            update={
                "figures": {
                    f"{deed}_ns/{size}": value * (1 + record.round / 100)
                    for deed, by_size in costs.items()
                    for size, value in by_size.items()
                }
            }
        )
        for record in records
    ]


@pytest.fixture(scope="module")
def told(results) -> list[TrialRecord]:
    return say(
        results.records,
        malloc={8: 4.0, 4096: 30.0, 1 << 30: 9e8},
        malloc_free={8: 7.0, 4096: 12.0, 1 << 30: 1.2e9},
        calloc={8: 5.0},
    )


def layers(chart: Any) -> list[list[dict[str, Any]]]:
    document = chart.to_dict()
    return [document["datasets"][layer["data"]["name"]] for layer in document["layer"]]


def test_only_what_is_told_by_size_is_drawn(results, told: list[TrialRecord]) -> None:
    assert data.courses(results.records, WORKLOAD) == []
    assert [each.deed for each in data.courses(told, WORKLOAD)] == ["malloc", "calloc"]
    assert data.courses(told, "another") == []
    plain = say(results.records[:1], malloc={})
    other = [each.model_copy(update={"figures": {"malloc_ns": 3.0, "malloc_ns/large": 4.0}}) for each in plain]
    assert data.courses(other, WORKLOAD) == []


def test_bars_are_medians_of_the_trials_that_count(results, told: list[TrialRecord]) -> None:
    (first, *_) = data.bars(told, WORKLOAD, "glibc", PAIR)
    rounds = sorted(
        (1 + r.round / 100) for r in told if r.configuration == "glibc" and r.repeat == 0 and r.status == "ok"
    )
    assert first.size == 8
    assert first.deed == pytest.approx(4 * statistics.median(rounds))
    assert first.whole == pytest.approx(7 * statistics.median(rounds))
    assert (first.low, first.high) == pytest.approx((7 * rounds[0], 7 * rounds[-1]))
    assert data.bars(told, WORKLOAD, "tbb", PAIR) == [], "it failed"


costs = st.dictionaries(st.integers(1, 1 << 40), st.floats(-1, 1e12, allow_nan=False), max_size=12)


@settings(deadline=None)
@given(deed=costs, whole=costs)
def test_bars_ascend_and_never_leave_their_trials(results, deed: dict[int, float], whole: dict[int, float]) -> None:
    records = say(results.records, malloc=deed, malloc_free=whole)
    found = data.bars(records, WORKLOAD, "freestone", PAIR)
    assert [bar.size for bar in found] == sorted(size for size, value in deed.items() if value > 0)
    for bar in found:
        assert 0 < bar.low <= bar.top <= bar.high
        assert (bar.whole is None) == (whole.get(bar.size, 0) <= 0)


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


@pytest.mark.parametrize(("size", "words"), [(8, "8 B"), (1536, "1.5 KiB"), (1 << 20, "1 MiB"), (1 << 30, "1 GiB")])
def test_sizes_in_words(size: int, words: str) -> None:
    assert bytes_in_words(size) == words


@pytest.mark.parametrize(("value", "words"), [(0.1, "0.1 ns"), (100, "100 ns"), (1e3, "1 µs"), (1e7, "10 ms")])
def test_powers_of_ten_in_words(value: float, words: str) -> None:
    assert drawing.nanoseconds(value) == words
