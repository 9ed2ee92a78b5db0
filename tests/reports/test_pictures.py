"""What leaves a report: pictures that can be opened, and files that Google Benchmark's compare.py can read."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from freestone.reports import google_benchmark, html, pictures, source
from freestone.reports.page import ExperimentPart, experiment_part

pytestmark = pytest.mark.long


@pytest.fixture
def folder(results_maker: Callable[..., object], tmp_path: Path) -> Path:
    return results_maker(("json-sqlite", "redis")).write(tmp_path / "results")  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_every_figure_of_the_page_is_a_picture(folder: Path, tmp_path: Path, kind: pictures.Picture) -> None:
    part = html.part(source.read(folder))
    written = pictures.write(part, tmp_path / "pictures", kind)
    figures = sum(len(workload.figures) + len(workload.panels) for workload in part.workloads)
    assert len(written) == len(set(written)) == figures + 1
    assert (tmp_path / "pictures" / f"overview.{kind}") in written
    for path in written:
        start = path.read_bytes()[:8]
        assert start.startswith(b"<svg" if kind == "svg" else b"\x89PNG"), path
        if kind == "svg":
            assert "var(--" not in path.read_text(), "the page's variables mean nothing outside it"


def test_metrics_by_parameter_have_pictures_of_their_own(family_maker: Callable[..., Any], tmp_path: Path) -> None:
    sizes = {"size": ("1K", "4K", "1M")}
    made = family_maker("loop-{size}-all", ["span-loop", "--size", "{size}"], sizes, operations=7.0)
    said = {"malloc_ns/8": 4.0, "malloc_ns/64": 9.0}
    told = [each.model_copy(update={"figures": {**each.figures, **said}}) for each in made.records]
    written = pictures.write(experiment_part(made.experiment, made.summary, told, anchor="x"), tmp_path, "svg")
    assert len(written) == len(set(written))
    names = {path.name for path in written}
    assert {name for name in names if name.startswith("parameters")} == {
        f"parameters.loop-n-all-by-size.{figure}.svg"
        for figure in ("time-of-one-operation", "peak-rss", "minor-faults-of-one-operation")
    }
    assert "loop-1k-all.malloc-by-size.svg" in names
    overview = (tmp_path / "overview.svg").read_text()
    assert "href" not in re.sub(r'xmlns:xlink="[^"]*"', "", overview), "a picture has no page to lead to"


def test_times_in_the_form_of_google_benchmark(folder: Path, tmp_path: Path) -> None:
    from freestone.records import store

    experiment, records = store.read_experiment(folder), store.read_trials(folder).records
    written = google_benchmark.write(experiment, records, tmp_path / "json")
    assert [path.stem for path in written] == [each.name for each in experiment.configurations]
    rows = json.loads((tmp_path / "json" / "glibc.json").read_text())["benchmarks"]
    mine = [row for row in rows if row["name"] == "redis"]
    seconds = [
        r.metrics.wall_s
        for r in records
        if (r.workload, r.configuration, r.repeat) == ("redis", "glibc", 0) and r.metrics is not None
    ]
    assert [row["real_time"] for row in mine] == pytest.approx([1e9 * each for each in seconds])
    assert {row["repetitions"] for row in mine} == {len(seconds)}
    failed = json.loads((tmp_path / "json" / "tbb.json").read_text())["benchmarks"]
    assert failed == [], "a failed run has no time"


def test_figures_by_case_have_names_of_their_own(folder: Path, tmp_path: Path) -> None:
    from freestone.records import store

    experiment, records = store.read_experiment(folder), store.read_trials(folder).records
    told = [each.model_copy(update={"figures": {"malloc_ns/64": 5.0, "floor_ns": 1.0}}) for each in records]
    google_benchmark.write(experiment, told, tmp_path)
    names = {row["name"] for row in json.loads((tmp_path / "glibc.json").read_text())["benchmarks"]}
    assert names == {"json-sqlite", "redis", "json-sqlite/malloc/64", "redis/malloc/64"}


def test_a_folder_that_cannot_be_made_is_named(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(pictures.ExportError, match=r"cannot write .*file"):
        pictures.write(html.part(source.read(folder)), tmp_path / "file" / "below", "svg")


@pytest.mark.long
def test_the_command_line_writes_them(folder: Path, tmp_path: Path) -> None:
    from freestone.records import store

    other = tmp_path / "other"
    shutil.copytree(folder, other)
    own = store.read_experiment(folder).id
    for file in (other / store.EXPERIMENT_FILE, other / store.TRIALS_FILE):  # a copy would count once
        file.write_text(file.read_text().replace(own, own + "-again"))
    (other / store.SUMMARY_FILE).unlink(missing_ok=True)
    asked = ["--figures", "pictures", "--benchmark-json", "json", "-o", "page.html"]
    done = subprocess.run(
        [sys.executable, "-m", "freestone", "report", str(folder), str(other), *asked],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    for name in (folder.name, other.name):
        assert (tmp_path / "pictures" / name / "overview.svg").exists(), "several experiments, a folder for each"
        assert (tmp_path / "json" / name / "freestone.json").exists()
    assert (tmp_path / "page.html").exists()


def test_a_report_reads_each_folder_once_and_builds_its_figures_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from freestone.commands.report import report
    from freestone.records import store

    counted = {"read": 0, "built": 0}
    read, build = store.read_trials, html.part

    def reading(asked: Path) -> store.Reading:
        counted["read"] += 1
        return read(asked)

    def building(held: source.Source, number: int = 1, **options: Any) -> ExperimentPart:
        counted["built"] += 1
        return build(held, number, **options)

    monkeypatch.setattr(store, "read_trials", reading)
    monkeypatch.setattr(html, "part", building)
    assert report(folder, output=tmp_path / "page.html", figures=tmp_path / "f", benchmark_json=tmp_path / "j") == 0
    assert counted == {"read": 1, "built": 1}
    assert (tmp_path / "f" / "overview.svg").exists()
