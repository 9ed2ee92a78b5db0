"""The page shows what counts: what fails, or does other work, now and then is drawn nowhere as if it were a result."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from freestone.analysis import arms, summarise
from freestone.records.schema import Experiment, Output, Status, Summary, TrialRecord, Workload
from freestone.reports import heatmap, html, parameter_table, quantities, table
from freestone.reports.page import ExperimentPart, experiment_part
from freestone.reports.page.parts import WorkloadPart
from freestone.reports.parameter_series import Trials
from freestone.reports.shown import counting, left_out, order_of

pytestmark = pytest.mark.xdist_group("what-counts")  # what they share is dear to make

BAD = "mimalloc"
"""It has ten trials of every workload, and one of each does not count."""

NUMBERS = {
    "seconds": 1.0,
    "operations": 1e6,
    "floor_seconds": 0.1,
    "floor_ns": 0.5,
    **{f"{deed}_ns/{size}": 5.0 * size for deed in ("malloc", "malloc_free", "calloc", "touch") for size in (16, 256)},
    **{f"free_ns/{figure}": 40.0 for figure in ("median", "p99.9", "p99.99", "longest")},
}
"""What a program says that has a figure of every kind: by size, by percentile, by order and by a number."""

ORDERED = [("lifo", 100), ("lifo", 1000), ("lifo", 10000), ("random", 100), ("fifo", 100)]

Made = tuple[Experiment, Summary, list[TrialRecord]]


@pytest.fixture(scope="module")
def sound(results_maker: Callable[..., Any]) -> tuple[Experiment, list[TrialRecord]]:
    """An experiment in which every trial counts."""
    made = results_maker(tuple(f"{order}-{live}" for order, live in ORDERED), bad=False)
    workloads = [
        Workload(
            name=f"{order}-{live}",
            command=["patterns", "--order", order, "--live", str(live)],
            parameters={"order": order, "live": str(live)},
            template="{order}-{live}",
        )
        for order, live in ORDERED
    ]
    records = [record.model_copy(update={"figures": NUMBERS}) for record in made.records]
    return made.experiment.model_copy(update={"workloads": workloads}), records


def with_one(sound: tuple[Experiment, list[TrialRecord]], status: Status) -> Made:
    """The same with one trial in ten of a status."""
    experiment, records = sound

    def spoilt(record: TrialRecord) -> TrialRecord:
        if (record.configuration, record.round) != (BAD, 3):
            return record
        if status == "different":
            return record.model_copy(update={"output": Output(stdout_bytes=64, stdout_sha256="1" * 64)})
        return record.model_copy(update={"status": status, "reason": "it was so"})

    told = [spoilt(record) for record in records]
    return experiment, summarise(experiment, told), arms.counted(experiment, told)


BROKEN: list[Status] = ["failed", "timeout", "invalid"]


@pytest.fixture(scope="module", params=[*BROKEN, "different"])
def made(request: pytest.FixtureRequest, sound: tuple[Experiment, list[TrialRecord]]) -> Made:
    return with_one(sound, request.param)


@pytest.fixture(scope="module")
def part(made: Made) -> ExperimentPart:
    return experiment_part(*made, anchor="only")


def documents(held: Any) -> Iterator[dict[str, Any]]:
    """Every chart that is anywhere in a part of the page."""
    if dataclasses.is_dataclass(held) and not isinstance(held, type):
        for each in dataclasses.fields(held):
            value = getattr(held, each.name)
            if each.name == "document":
                yield json.loads(value)
            else:
                yield from documents(value)
    elif isinstance(held, list | tuple):
        for value in held:
            yield from documents(value)


def marks(document: dict[str, Any]) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    for layer in document["layer"]:
        yield layer["mark"], document["datasets"][layer["data"]["name"]]


def drawn_numbers(document: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The marks of a document that draw a number of a configuration, but for hollow ones."""
    return [
        mark
        for mark, rows in marks(document)
        for row in rows
        if row.get("configuration") == name
        and any(isinstance(value, int | float) for key, value in row.items() if key != "log")
        and mark.get("filled") is not False
    ]


def test_every_kind_of_figure_is_there(sound: tuple[Experiment, list[TrialRecord]]) -> None:
    experiment, records = sound
    part = experiment_part(experiment, summarise(experiment, records), records, anchor="only")
    assert [each.parameter for each in part.parameters] == ["order", "live"]
    for workload in part.workloads:
        titles = {figure.title for figure in workload.figures}
        assert titles >= {"malloc by size", "malloc free by size", "calloc by size", "free by percentile"}
        assert BAD in {panel.name.text for panel in workload.panels}
        assert workload.left_out == ""
    assert sum(bool(drawn_numbers(document, BAD)) for document in documents(part)) > 30


def test_what_fails_now_and_then_is_drawn_nowhere(part: ExperimentPart) -> None:
    guilty = [mark for document in documents(part) for mark in drawn_numbers(document, BAD)]
    assert not guilty
    assert all(drawn_numbers(document, "freestone") for document in documents(part.parameters))


def test_panels_are_of_results_alone(part: ExperimentPart) -> None:
    for workload in part.workloads:
        assert workload.panels
        assert BAD not in {panel.name.text for panel in workload.panels}


def said_beside(part: ExperimentPart) -> Iterator[str]:
    """The words beside each figure out of which a configuration can be left."""
    for workload in part.workloads:
        yield from (figure.caption for figure in workload.figures if " by " in figure.title)
        yield workload.left_out
    yield from (figure.caption for family in part.parameters for figure in family.figures)


def test_what_is_left_out_is_named_beside_each_figure(made: Made, part: ExperimentPart) -> None:
    cell = next(cell for cell in made[1].cells if cell.configuration == BAD)
    assert cell.status != "ok"
    for words in said_beside(part):
        assert f"Left out: {BAD} (1 of 10 {quantities.STATUS_WORDS[cell.status]})." in words


def test_page_and_terminal_say_the_same_of_it(made: Made, part: ExperimentPart) -> None:
    shown = table.render(made[1], width=250, colour=False)
    lines = [line for line in shown.splitlines() if line.startswith(f" {BAD} ")]
    assert len(lines) == len(part.workloads)
    for workload, line in zip(part.workloads, lines, strict=True):
        (row,) = (row for row in workload.rows if row.name.text == BAD)
        assert row.status in line
        assert not any(value.ratio for value in row.values)
        if row.values:
            assert f" {row.values[0].figure} " in line
        else:
            assert "different" not in line
    assert len({bool(row.values) for each in part.workloads for row in each.rows if row.name.text == BAD}) == 1


def test_a_terminal_leaves_it_out_call_by_call(made: Made) -> None:
    text = parameter_table.text(Trials(*made), made[1], width=120, colour=False)
    heads = [line for line in text.splitlines() if line.split()[:1] == ["percentile"]]
    assert len(heads) == len(ORDERED)
    assert all("freestone" in line and BAD not in line for line in heads)
    assert text.count(f"Left out: {BAD}") == len(ORDERED)


def test_other_output_is_shown_and_not_ranked(sound: tuple[Experiment, list[TrialRecord]]) -> None:
    made = with_one(sound, "different")
    part = experiment_part(*made, anchor="only")
    for workload in part.workloads:
        assert quantities.NOT_RANKED in workload.notes
        assert BAD in workload.gist.partition("without a result")[2]
        times = next(figure for figure in workload.figures if figure.title == "Time of every trial")
        hollow = [rows for mark, rows in marks(json.loads(times.document)) if mark.get("filled") is False]
        assert [{row["configuration"] for row in rows} for rows in hollow] == [{BAD}]
        assert len(hollow[0]) == 10
        (numbers,) = (row for row in times.numbers.rows if row[0] == BAD)
        assert numbers[1].endswith("(median, 1 of 10 different output)")
        trials = [row for row in workload.trials.rows if row[3].startswith("different output: ")]
        assert [row[2] for row in trials] == [BAD]
        assert any(entry[0].isdigit() for entry in trials[0][4:])
    page = html.render([part])
    assert '<small class="absent">1 of 10 different output</small>' in page


def test_what_has_no_figures_stands_below_what_is_only_not_ranked(
    sound: tuple[Experiment, list[TrialRecord]],
) -> None:
    experiment, summary, _ = with_one(sound, "different")
    cells = [
        cell.model_copy(update={"status": "failed"}) if cell.configuration == "glibc" else cell
        for cell in summary.cells
    ]
    order = order_of(experiment, summary.model_copy(update={"cells": cells}), "lifo-100")
    assert order[-2:] == [BAD, "glibc"]


def first_workload(experiment: Experiment, summary: Summary, records: list[TrialRecord]) -> WorkloadPart:
    return experiment_part(experiment, summary, records, anchor="only").workloads[0]


def test_without_a_baseline_nobody_is_called_it(sound: tuple[Experiment, list[TrialRecord]]) -> None:
    experiment, records = sound
    told = [
        record.model_copy(update={"status": "failed", "reason": "it crashed"})
        if record.configuration == "glibc"
        else record
        for record in records
    ]
    summary = summarise(experiment, told)
    gist = first_workload(experiment, summary, told).gist
    assert gist.startswith("least time: freestone;")
    assert "baseline" not in gist
    words = {square.words for square in heatmap.squares(experiment, summary)}
    assert words == {"–"}, "a square without a ratio says nothing, and not that all is well"


def test_what_counts_is_what_the_summary_says(made: Made) -> None:
    experiment, summary, records = made
    mine = counting(summary, records, ["lifo-100"])
    assert {record.workload for record in mine} == {"lifo-100"}
    assert {record.configuration for record in mine} == {each.name for each in experiment.configurations} - {BAD}
    assert len(counting(summary, records)) == len(ORDERED) * 10 * len(experiment.configurations)


def test_what_is_left_out_on_some_workloads_is_said_with_their_names(
    sound: tuple[Experiment, list[TrialRecord]],
) -> None:
    _, summary, _ = with_one(sound, "failed")
    some = [
        cell.model_copy(update={"status": "ok"}) if cell.workload in ("lifo-100", "random-100") else cell
        for cell in summary.cells
    ]
    partly = summary.model_copy(update={"cells": some})
    assert left_out(partly, ["lifo-100"]) == ""
    assert left_out(partly, ["lifo-1000"]) == f"Left out: {BAD} (1 of 10 failed)."
    assert (
        left_out(partly, ["lifo-100", "lifo-1000", "lifo-10000"])
        == f"Left out: {BAD} on lifo-1000 and lifo-10000 (1 of 10 failed)."
    )


def test_amounts_that_only_a_failing_configuration_lacks_are_told_of_one_operation(
    sound: tuple[Experiment, list[TrialRecord]],
) -> None:
    experiment, records = sound
    told = [
        record.model_copy(
            update={"figures": None, **({"status": "failed", "reason": "it crashed"} if record.round == 3 else {})}
        )
        if record.configuration == BAD
        else record
        for record in records
    ]
    part = experiment_part(experiment, summarise(experiment, told), told, anchor="only")
    titles = [figure.title for family in part.parameters for figure in family.figures]
    assert "Time of one operation" in titles
