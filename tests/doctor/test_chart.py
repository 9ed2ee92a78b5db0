"""A chart is read as it was written; one of before a field was there has its default."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from freestone.doctor import chart as charts
from freestone.doctor import diagnosis
from freestone.doctor.chart import Chart
from freestone.doctor.observations import Observations, Platform
from freestone.doctor.remedies import folios, remedy
from freestone.records.schema import Allocator, Configuration, Experiment, Machine, Workload
from freestone.records.store import StoreError


@pytest.fixture
def chart() -> Chart:
    head = Experiment(
        id="e",
        created_at="2026-11-26T00:00:00+00:00",
        freestone_version="0",
        command_line=["freestone", "doctor", "--", "x"],
        machine=Machine(id="m", facts={}),
        workloads=[Workload(name="w", command=["x"])],
        configurations=[Configuration(name="glibc", allocator=Allocator(name="glibc", title="glibc"))],
        baseline="glibc",
        rounds=5,
        seed=0,
    )
    return Chart(
        experiment=head,
        remedies={"freestone": remedy("freestone", "another", {"FREESTONE_OPTIONS": "harden=1"})},
        left_out=[(folios("glibc", 64), "no consent")],
        given={"hugepages-64kB": 0},
    )


def test_it_is_read_as_it_was_written(chart: Chart, tmp_path: Path) -> None:
    charts.write(tmp_path, chart)
    assert charts.read(tmp_path) == chart


def test_one_of_before_says_nothing_of_what_was_left_out(chart: Chart, tmp_path: Path) -> None:
    whole = json.loads(chart.model_dump_json())
    del whole["left_out"], whole["given"]
    (tmp_path / charts.CHART).write_text(json.dumps(whole))
    assert (charts.read(tmp_path).left_out, charts.read(tmp_path).given) == ([], {})


def test_a_diagnosis_is_complete_once_the_last_part_was_seen_and_remedies_were_chosen(chart: Chart) -> None:
    seen = Observations(command=["x"], platform=Platform(), done=["platform", "cost"])
    assert charts.is_unfinished(chart, None)
    assert not charts.is_unfinished(chart, seen), "whose cost could not be had is not looked at any further"
    costed = seen.model_copy(update={"cost": {"runs": 1, "wall_s": 1.0, "user_s": 1.0, "sys_s": 0.0}})
    assert charts.is_unfinished(chart, costed)
    whole = costed.model_copy(update={"done": ["platform", "cost", "sites"]})
    assert not charts.is_unfinished(chart, whole)
    assert charts.is_unfinished(chart.model_copy(update={"remedies": None}), whole)
    assert not charts.is_unfinished(chart.model_copy(update={"remedies": None, "observe_only": True}), whole)


def test_a_folder_in_which_nothing_was_seen_yet_is_one_line(chart: Chart, tmp_path: Path) -> None:
    charts.write(tmp_path, chart)
    with pytest.raises(StoreError, match="nothing was seen yet; go on with: freestone doctor --resume") as caught:
        diagnosis.read(tmp_path)
    assert "\n" not in str(caught.value)
