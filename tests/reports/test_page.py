"""What the page says, whatever the records say."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freestone.records.schema import Allocator, Configuration, Experiment, Machine, Summary, TrialRecord, Workload
from freestone.reports import html, quantities
from freestone.reports.page import experiment_part

facts = st.dictionaries(
    st.text(max_size=12), st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12)
)


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_summary_has_a_page(summaries: st.SearchStrategy[Summary], results, data: st.DataObject) -> None:
    summary = data.draw(summaries)
    names = list(dict.fromkeys(cell.configuration for cell in summary.cells))
    workloads = list(dict.fromkeys(cell.workload for cell in summary.cells))
    experiment = Experiment(
        id="e",
        created_at=data.draw(st.sampled_from(["2026-11-20T13:15:00+00:00", "yesterday"])),
        freestone_version="0",
        command_line=data.draw(st.lists(st.text(max_size=10), max_size=4)),
        machine=Machine(id="m", facts=data.draw(facts)),
        workloads=[Workload(name=name, command=["x"]) for name in workloads],
        configurations=[Configuration(name=name, allocator=Allocator(name="a", title=name)) for name in names],
        baseline=summary.baseline,
        rounds=5,
        seed=0,
    )
    some: list[TrialRecord] = data.draw(st.lists(st.sampled_from(results.records), max_size=8))
    records = [
        record.model_copy(
            update={
                "workload": data.draw(st.sampled_from(workloads)),
                "configuration": data.draw(st.sampled_from(names)),
            }
        )
        for record in some
    ]
    part = experiment_part(experiment, summary, records, anchor="only")
    for workload in part.workloads:
        for row, cell in ((row, cell) for row in workload.rows for cell in summary.cells):
            if (cell.workload, cell.configuration) == (workload.name, row.name.text):
                assert bool(row.values) == quantities.has_figures(cell) or not workload.headers
        for figure in workload.figures:
            json.loads(figure.document)
            assert "<" not in figure.document
    page = html.render([part])
    assert page.rstrip().endswith("</html>")


def test_the_processor_and_the_rounds_stand_next_to_the_headline(results) -> None:
    part = experiment_part(results.experiment, results.summary, results.records, anchor="only")
    assert dict(part.strip)["processor"] == "AMD EPYC 7B13, 2 cores"
    assert dict(part.strip)["rounds"] == "10 of 10"


def test_facts_are_written_for_people(results) -> None:
    part = experiment_part(results.experiment, results.summary, results.records, anchor="only")
    machine = dict(part.machine)
    assert machine["l2"] == "512 KiB"
    assert machine["governor"] == "not known"
    assert machine["turbo"] == "yes"
