"""Lines over threads, sizes and live blocks: every trial a dot, every line named, axes that suit."""

from __future__ import annotations

import itertools
import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from freestone.records.schema import TrialRecord
from freestone.reports import vega
from freestone.reports.families import Family, Member, families
from freestone.reports.scaling import chart as drawing
from freestone.reports.scaling import data
from freestone.reports.theme import LIGHT

NUMBERS = ("1", "2", "16")


def of(results: Any, records: list[TrialRecord] | None = None) -> tuple[Any, Any, list[TrialRecord]]:
    return results.experiment, results.summary, results.records if records is None else records


def test_every_configuration_is_named_at_the_end_of_its_line(scaled: Any, family: Family, tmp_path: Path) -> None:
    for measure in data.MEASURES:
        chart = drawing.draw(*of(scaled), family, measure)
        assert chart is not None
        root = ElementTree.parse(vega.save_svg(chart, tmp_path / f"{measure}.svg")).getroot()
        words = ["".join(node.itertext()) for node in root.iter() if node.tag.endswith("text")]
        for name in ("glibc", "freestone", "mimalloc", "tcmalloc", "threads", *NUMBERS):
            assert words.count(name) == 1, (measure, name)


def test_every_trial_that_counts_is_a_dot_and_no_other(scaled: Any, family: Family, tmp_path: Path) -> None:
    good = [r for r in scaled.records if r.status == "ok" and not r.repeat]
    for measure in data.MEASURES:
        chart = drawing.draw(*of(scaled), family, measure)
        assert chart is not None
        root = ElementTree.parse(vega.save_svg(chart, tmp_path / f"{measure}.svg")).getroot()
        (dots,) = (node for node in root.iter() if "layer_0_marks" in node.get("class", ""))
        assert len(dots) == len(good) == len(NUMBERS) * 4 * 10


def test_a_trial_far_from_its_median_is_on_the_axis(scaled: Any, family: Family) -> None:
    good = next(r for r in scaled.records if r.configuration == "glibc" and r.status == "ok" and not r.repeat)
    slow = good.model_copy(update={"metrics": good.metrics.model_copy(update={"wall_s": 900.0})})
    chart = drawing.draw(*of(scaled, [slow if r is good else r for r in scaled.records]), family, "time")
    assert chart is not None
    for layer in chart.to_dict()["layer"]:
        assert layer["encoding"]["y"]["scale"]["domain"][1] > 0.9


def test_a_trial_takes_few_bytes_of_the_page(family_maker: Callable[..., Any]) -> None:
    whole = family_maker("loop-{}", ["loop", "--size", "{}"], NUMBERS, operations=7.0)
    (family,) = families(whole.experiment.workloads)
    sizes = []
    for rounds in (6, 10):
        chart = drawing.draw(*of(whole, [r for r in whole.records if r.round < rounds]), family, "time")
        assert chart is not None
        sizes.append(len(json.dumps(vega.specification(chart, LIGHT))))
    assert sizes[1] - sizes[0] < 24 * 4 * len(NUMBERS) * 4


numbers = st.lists(st.integers(0, 1 << 34), unique=True, min_size=3, max_size=12).map(sorted)


@given(numbers, st.integers(1, 200), st.floats(0.06, 0.5))
def test_trials_stand_right_of_their_number_and_nearer_to_it_than_to_the_next(
    ats: list[int], trials: int, right: float
) -> None:
    family = Family("size", "loop", tuple(Member(f"w{at}", at) for at in ats), same_work=True)
    across = drawing._across(family, right)
    for number, following in itertools.pairwise([*ats, None]):
        assert number is not None
        here = across.share(number)
        shares = [across.share(place) - here for place in across.beside(number, trials)]
        assert all(first < second for first, second in itertools.pairwise(shares))
        assert shares[0] > 0
        assert here + shares[-1] <= 1
        if following is not None:
            assert shares[-1] < (across.share(following) - here) / 2


def test_one_point_is_no_line(scaled: Any, family: Family) -> None:
    lone = [r for r in scaled.records if r.workload == "server-1"]
    assert drawing.draw(*of(scaled, lone), family, "time") is None


def test_axes_are_logarithmic_where_values_lie_far_apart(scaled: Any, family: Family) -> None:
    near = drawing.draw(*of(scaled), family, "peak_rss_kib")
    steep = [
        r.model_copy(update={"figures": {"operations": 10.0 ** int(r.workload.removeprefix("server-"))}})
        for r in scaled.records
    ]
    far = drawing.draw(*of(scaled, steep), family, "time")
    scales = []
    for chart in (near, far):
        assert chart is not None
        encoding = chart.to_dict()["layer"][1]["encoding"]
        scales.append((encoding["x"]["scale"]["type"], encoding["y"]["scale"].get("type", "linear")))
        assert encoding["y"]["scale"]["domain"][0] == 0 or scales[-1][1] == "log"
    assert scales == [("log", "linear"), ("log", "log")]


def test_no_line_leads_over_a_number_without_a_result(family_maker: Callable[..., Any]) -> None:
    whole = family_maker("loop-{}", ["loop", "--size", "{}"], ("1", "2", "4", "8", "16"), operations=7.0)
    (family,) = families(whole.experiment.workloads)
    cells = [
        cell.model_copy(update={"status": "failed"})
        if (cell.workload, cell.configuration) == ("loop-4", "mimalloc")
        else cell
        for cell in whole.summary.cells
    ]
    chart = drawing.draw(
        whole.experiment, whole.summary.model_copy(update={"cells": cells}), whole.records, family, "time"
    )
    assert chart is not None
    document = chart.to_dict()
    (line,) = (layer for layer in document["layer"] if layer["mark"]["type"] == "line")
    assert line["encoding"]["detail"]["field"] == "run"
    parts = {
        name: [
            (row["at"], row["run"])
            for row in document["datasets"][line["data"]["name"]]
            if row["configuration"] == name
        ]
        for name in ("mimalloc", "freestone")
    }
    assert parts["mimalloc"] == [(1, 0), (2, 0), (8, 1), (16, 1)]
    assert {run for _, run in parts["freestone"]} == {0}
