"""Results in a notebook: data frames of three kinds that say the same, charts that can be drawn, the example itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest

import freestone
from freestone.records import store
from freestone.records.schema import InstructionCount, InstructionCounts
from freestone.records.store import StoreError
from freestone.reports import html, source, vega
from freestone.reports.theme import FONT

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("notebook")]  # what they share is made once

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "notebooks" / "overview.ipynb"


@pytest.fixture(scope="module")
def results(results_folder: Path) -> freestone.Results:
    return freestone.load(results_folder)


def test_every_trial_is_a_row_in_every_kind_of_frame(results: freestone.Results) -> None:
    arrow, pandas, polars = results.trials("arrow"), results.trials("pandas"), results.trials("polars")
    assert arrow.num_rows == len(pandas) == polars.height == len(results.records) == 2 * 3 * 3
    assert arrow.column_names == list(pandas.columns) == polars.columns
    assert arrow["wall_s"].to_pylist() == pandas["wall_s"].tolist() == polars["wall_s"].to_list()
    assert set(pandas["configuration"]) == {"glibc", "freestone"}
    assert (pandas["figure:seconds"] > 0).all()


def test_cells_are_the_summary(results: freestone.Results) -> None:
    rows = results.cells("pandas")
    for cell in results.summary.cells:
        mine = rows[(rows.workload == cell.workload) & (rows.configuration == cell.configuration)]
        assert dict(zip(mine.metric, mine["median"], strict=True)) == cell.median
    against = rows[(rows.configuration == "freestone") & (rows.metric == "figure:seconds")]
    assert ((against.low <= against.ratio) & (against.ratio <= against.high)).all()
    assert len(results.left_out("pandas")) == 0


def test_figures_are_charts(results: freestone.Results, tmp_path: Path) -> None:
    workload = results.workloads[0]
    charts = [results.overview(), results.overview("peak_rss_kib"), results.points(workload), results.trade(workload)]
    charts += [results.ratios(workload, "figure:seconds"), *results.published().values()]
    memory = results.memory_over_time(workload, "glibc")
    noise = results.noise(workload)
    charts += [each for each in (memory, noise) if each is not None]
    for chart in charts:
        document = chart.to_dict()
        assert document["config"]["font"] == FONT
        assert document["width"] != "container", "nothing contains it"
    assert vega.save_svg(results.overview(), tmp_path / "overview.svg").read_text().count("lifo-16-100") >= 1


def test_published_counts_are_a_chart_where_the_folder_has_counts(results_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "counted"
    shutil.copytree(results_folder, folder)
    title = "Small allocations in a parallel loop, counted"
    assert freestone.load(folder).instructions is None
    assert title not in freestone.load(folder).published()
    counts = [
        InstructionCount(
            workload=f"parallel-O3-{through}",
            configuration="glibc",
            status="ok",
            command=["parallel", "--objects", "1000"],
            instructions=count,
            data_reads=count // 4,
            data_writes=count // 12,
        )
        for through, count in (("libc", 300_000), ("tbb", 390_000))
    ]
    store.write_instructions(
        folder, InstructionCounts(experiment="counted", valgrind="3.19.0", counts=counts, heaps=[])
    )
    counted = freestone.load(folder)
    assert counted.instructions is not None
    assert counted.instructions.counts == counts
    charts = counted.published()
    assert '"glibc 1.3"' in json.dumps(charts[title].to_dict()), "instructions through TBB, ratio to malloc"
    told = [each.title for each in html.part(source.read(folder)).published]
    assert list(charts) == told, "what the report has"


def test_sizes_are_charts_where_a_workload_tells_them(results: freestone.Results) -> None:
    workload = results.workloads[0]
    assert results.sizes(workload) == {}
    told = [each.model_copy(update={"figures": {"calloc_ns/8": 5.0}}) for each in results.records]
    other = freestone.Results(
        folder=results.folder, experiment=results.experiment, records=told, summary=results.summary
    )
    ((title, chart),) = other.sizes(workload).items()
    assert title == "calloc, by size"
    document = chart.to_dict()
    assert document["config"]["font"] == FONT
    assert len(document["concat"]) == 2
    with pytest.raises(KeyError, match="no workload is called 'sizes'"):
        results.sizes()


def test_scaling_is_a_chart_for_each_family(results: freestone.Results) -> None:
    assert results.scaling() == {}, "two workloads are no family"
    names = ("lifo-16-100", "lifo-64-100", "lifo-1024-100")
    copies = [
        results.experiment.workloads[0].model_copy(
            update={"name": name, "command": ["p", "--size", name.split("-")[1]]}
        )
        for name in names
    ]
    mine = [each for each in results.records if each.workload == names[0]]
    cells = [each for each in results.summary.cells if each.workload == names[0]]
    family = freestone.Results(
        folder=results.folder,
        experiment=results.experiment.model_copy(update={"workloads": copies}),
        records=[each.model_copy(update={"workload": name}) for name in names for each in mine],
        summary=results.summary.model_copy(
            update={"cells": [each.model_copy(update={"workload": name}) for name in names for each in cells]}
        ),
    )
    for measure in ("time", "peak_rss_kib", "minor_faults"):
        ((name, chart),) = family.scaling(measure).items()
        assert name == "lifo-…-100 by size"
        assert chart.to_dict()["width"] == 560


def test_wrong_names_are_told_with_the_right_ones(results: freestone.Results, tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="no workload is called 'lifo'; there are lifo-16-100, fifo-16-100"):
        results.points("lifo")
    with pytest.raises(ValueError, match="no data frame is called 'excel'; there are arrow, pandas, polars"):
        results.trials("excel")  # type: ignore[arg-type]
    with pytest.raises(StoreError, match="does not exist"):
        freestone.load(tmp_path / "nowhere")
    with pytest.raises(AttributeError, match="module 'freestone' has no attribute 'loud'"):
        _ = freestone.loud


def test_a_missing_library_is_named(results: freestone.Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(
        freestone.MissingLibrary, match=r"polars is not installed: pip install '\.\[notebook\]' in the clone"
    ):
        results.trials("polars")


def test_the_example_runs_from_top_to_bottom(
    results_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FREESTONE_RESULTS", str(results_folder))
    book = nbformat.read(EXAMPLE, as_version=4)
    nbclient.NotebookClient(
        book, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [each for each in outputs if each.output_type in ("error", "stream")]
    drawn = [each for each in outputs if "vegaEmbed" in each.get("data", {}).get("text/html", "")]
    assert len(drawn) >= 4


def test_the_example_is_committed_without_its_outputs() -> None:
    book = nbformat.read(EXAMPLE, as_version=4)
    assert all(not cell.outputs and cell.execution_count is None for cell in book.cells if cell.cell_type == "code")


def test_the_command_line_does_not_load_it() -> None:
    script = "import sys, freestone; sys.exit('altair' in sys.modules or 'freestone.notebook' in sys.modules)"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    assert subprocess.run([sys.executable, "-c", script], env=environment).returncode == 0


def test_orders_are_a_row_for_each_order_and_a_chart_for_each_size(results: freestone.Results) -> None:
    rows = results.orders().to_pylist()
    assert {(row["order"], row["configuration"]) for row in rows} == {
        (order, name) for order in ("lifo", "fifo") for name in ("glibc", "freestone")
    }
    for row in rows:
        assert (row["size"], row["live"], row["shuffled"]) == (16, 100, False)
        assert row["floor_ns"] > 0
        assert row["million_per_second"] == pytest.approx(1e3 / row["ns"])
        assert row["order"] == "fifo" or row["ratio"] is None
    assert set(results.against_lifo()) <= {"16 B, 100 live"}
