"""The latency of single calls drawn: shares that fall, one axis for both deeds, every configuration named."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.records.schema import TrialRecord
from freestone.reports import vega
from freestone.reports.tails import chart as drawing
from freestone.reports.tails import data
from freestone.reports.tails import page as tails_page
from freestone.reports.theme import DARK, LIGHT, Theme

WORKLOAD = "json-sqlite"


def say(records: list[TrialRecord], **calls: dict[int, int]) -> list[TrialRecord]:
    """The records with figures of a program that tells histograms of its calls."""
    said = {f"{deed}_calls/{end}": float(n) for deed, by_end in calls.items() for end, n in by_end.items()}
    return [record.model_copy(update={"figures": {"seconds": 1.0, **said}}) for record in records]


@pytest.fixture(scope="module")
def told(results) -> list[TrialRecord]:
    return say(
        results.records,
        malloc={8: 900, 64: 90, 1024: 9, 1 << 20: 1},
        malloc_and_write={16: 990, 1 << 20: 10},
        free={8: 990, 256: 10},
        nothing={1: 99, 64: 1},
    )


histograms = st.dictionaries(st.integers(1, 1 << 40), st.integers(1, 1 << 40), min_size=1, max_size=30)


@given(histograms)
def test_a_share_is_of_the_calls_that_took_so_long_or_longer(calls: dict[int, int]) -> None:
    found = data.course(calls)
    whole = sum(calls.values())
    assert [point.ns for point in found] == sorted(calls)
    for point in found[:-1]:
        slower = sum(count for end, count in calls.items() if end > point.ns)
        assert math.isclose(point.share, slower / whole)
    assert math.isclose(found[-1].share, calls[max(calls)] / whole)


@given(histograms, st.floats(0, 1 << 41))
def test_a_line_ends_at_the_longest_call_within_its_bucket(calls: dict[int, int], longest: float) -> None:
    found, without = data.course(calls, longest), data.course(calls)
    assert found[:-1] == without[:-1]
    assert found[-1].share == without[-1].share
    before = without[-2].ns if len(without) > 1 else 1
    assert before <= found[-1].ns <= without[-1].ns
    if before <= longest <= without[-1].ns:
        assert abs(found[-1].ns - longest) <= 0.5


def test_the_longest_of_all_rounds_ends_the_line(results, told: list[TrialRecord]) -> None:
    records = [
        record.model_copy(update={"figures": {**(record.figures or {}), "malloc_ns/longest": 6e5 + record.round}})
        for record in told
    ]
    found = data.courses(results.experiment, results.summary, records, WORKLOAD, "malloc")
    rounds = [r.round for r in told if (r.workload, r.configuration, r.status) == (WORKLOAD, "glibc", "ok")]
    assert found["glibc"][-1].ns == 6e5 + max(rounds)


@given(histograms)
def test_shares_only_fall_and_are_never_nothing(calls: dict[int, int]) -> None:
    found = data.course(calls)
    assert all(0 < point.share <= 1 for point in found)
    assert all(one.share >= two.share for one, two in pairwise(found))


def test_no_calls_have_no_course() -> None:
    assert data.course({}) == []


def test_the_calls_of_all_trials_that_count_are_added_up(results, told: list[TrialRecord]) -> None:
    trials = [r for r in told if (r.workload, r.configuration, r.status, r.repeat) == (WORKLOAD, "glibc", "ok", 0)]
    found = data.histogram(told, WORKLOAD, "glibc", "malloc")
    assert found == {end: n * len(trials) for end, n in {8: 900, 64: 90, 1024: 9, 1 << 20: 1}.items()}
    assert data.histogram(told, WORKLOAD, "tbb", "malloc") == {}, "it failed"
    assert data.histogram(told, "another", "glibc", "malloc") == {}
    everybody = data.histogram(told, WORKLOAD, None, "nothing")
    assert everybody[64] > data.histogram(told, WORKLOAD, "glibc", "nothing")[64]


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
def test_every_line_is_named_and_the_axes_speak(
    results, told: list[TrialRecord], tmp_path: Path, theme: Theme
) -> None:
    chart = drawing.draw(results.experiment, results.summary, told, WORKLOAD, "malloc")
    assert chart is not None
    root = ElementTree.parse(vega.save_svg(chart, tmp_path / "tails.svg", theme=theme)).getroot()
    words = {"".join(node.itertext()) for node in root.iter() if node.tag.endswith("text")}
    assert {"glibc", "freestone", "mimalloc", "tcmalloc", "10 ns", "1 µs", "1 ms", "all", "1 in 1,000"} <= words
    assert "tbb" not in words


def test_one_bucket_is_enough_for_a_picture(results, tmp_path: Path) -> None:
    records = say(results.records, malloc={1: 3})
    chart = drawing.draw(results.experiment, results.summary, records, WORKLOAD, "malloc")
    assert chart is not None
    assert vega.save_svg(chart, tmp_path / "one.svg").stat().st_size > 0


@pytest.mark.parametrize(
    ("share", "words"),
    [(1, "all"), (0.9999, "all"), (0.1, "1 in 10"), (0.0004, "1 in 2,500"), (1e-6, "1 in 1,000,000")],
)
def test_a_share_in_words(share: float, words: str) -> None:
    assert data.one_in(share) == words


def test_a_median_below_the_clocks_step_is_told_as_that(results, told: list[TrialRecord]) -> None:
    said = {"malloc_ns/median": 4.0, "malloc_ns/longest": 900.0, "clock_step_ns": 20.0}
    records = [record.model_copy(update={"figures": {**(record.figures or {}), **said}}) for record in told]
    numbers = tails_page.part(results.experiment, results.summary, records, WORKLOAD)[1].numbers
    assert "< 20 ns" in numbers.rows[0]
    assert "900 ns" in numbers.rows[0]


def test_a_median_below_two_steps_is_told_with_the_step(results, told: list[TrialRecord]) -> None:
    said = {"malloc_ns/median": 30.0, "malloc_ns/p99.9": 40.0, "malloc_ns/longest": 900.0, "clock_step_ns": 20.0}
    records = [record.model_copy(update={"figures": {**(record.figures or {}), **said}}) for record in told]
    numbers = tails_page.part(results.experiment, results.summary, records, WORKLOAD)[1].numbers
    assert numbers.rows[0][2:4] == ["30 ns ± 20 ns", "40 ns"]
