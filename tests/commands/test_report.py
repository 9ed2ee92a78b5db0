"""What a report writes is of all that it was given, or it says of what it is not."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented_results import make_results

from freestone.commands import side_by_side
from freestone.records import store
from freestone.records.schema import Order, Place

Tool = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def order(tmp_path: Path) -> Path:
    """Results of an order of two machines, and a third one that has none."""
    names = ("board", "desk", "away")
    for seed, name in enumerate(names[:2], start=1):
        make_results(seed=seed, machine=name).write(tmp_path / "order" / name)
    places = [Place(name=name, engine="ssh", address=name) for name in names]
    words = ["compare", "--", "true"]
    head = Order(id="o", created_at="", freestone_version="1", words=words, places=places)
    store.write_order(tmp_path / "order", head)
    return tmp_path / "order"


@pytest.mark.parametrize("option", ["--export-csv", "--export-json", "--export-markdown"])
def test_no_file_holds_one_place_of_many(freestone: Tool, tmp_path: Path, order: Path, option: str) -> None:
    done = freestone("report", order, "--no-html", option, tmp_path / "written")
    first = store.places(order)[0]
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"freestone: {option}: of one place, as in freestone report {first} {option} ...\n"
    assert not (tmp_path / "written").exists()
    alone = freestone("report", first, "--no-html", option, tmp_path / "written")
    assert (alone.returncode, (tmp_path / "written").exists()) == (0, True)


def test_machines_of_an_order_stand_side_by_side_and_those_without_results_are_named(
    freestone: Tool, order: Path
) -> None:
    done = freestone("report", order)
    assert (done.returncode, done.stderr) == (0, "")
    assert "json-sqlite on 2 machines\n" in done.stdout
    assert "no results yet: away." in done.stdout
    page = (order / store.REPORT_FILE).read_text()
    assert '<td><a href="#experiment-1">board</a></td>' in page
    assert '<article id="experiment-2"' in page
    assert "<h1>2 experiments on 2 machines</h1>" in page
    (order / "desk" / store.EXPERIMENT_FILE).write_text("{")
    done = freestone("report", order, "--no-html", "--json")
    assert (done.returncode, len(json.loads(done.stdout))) == (5, 1)
    assert "desk is left out: " in done.stderr
    assert "no results yet: away" in done.stderr


def test_a_copy_counts_once_and_a_damaged_folder_is_a_line(freestone: Tool, tmp_path: Path, order: Path) -> None:
    one, other = store.places(order)
    copy = tmp_path / "copy"
    shutil.copytree(one, copy)
    trials = copy / store.TRIALS_FILE
    trials.write_text("".join(trials.read_text().splitlines(keepends=True)[:-1]))
    done = freestone("report", copy, other, one, "nowhere", "--no-html")
    assert done.returncode == 5
    first, second = done.stderr.splitlines()
    assert first == f"freestone: {copy} is the same measurement as {one}: it counts once"
    assert second.startswith("freestone: nowhere is left out: nowhere does not exist")
    assert "json-sqlite on 2 machines" in done.stdout
    none = freestone("report", "nowhere", "nothing", "--no-html")
    assert (none.returncode, none.stdout) == (5, "")
    assert none.stderr.splitlines()[-1] == "freestone: none of the 2 results folders can be read"


def measured(folder: Path, seed: int) -> Path:
    """A result of one machine, which is no copy of another one's."""
    return make_results(seed=seed, machine=f"machine {seed}").write(folder)


@pytest.mark.parametrize("given_folders", [["a/x", "b/x"], ["a/x", "b/x", "a-x", "a-x-2", "a-x-3"]])
def test_folders_are_written_apart_whatever_they_are_called(
    freestone: Tool, tmp_path: Path, given_folders: list[str]
) -> None:
    for seed, folder in enumerate(given_folders, start=1):
        measured(tmp_path / folder, seed)
    done = freestone("report", *given_folders, "--no-html", "--benchmark-json", tmp_path / "times")
    assert done.returncode == 0, done.stderr
    folders = sorted((tmp_path / "times").iterdir())
    assert len(folders) == len(given_folders)
    told = {tuple(sorted((file.name, file.read_text()) for file in folder.iterdir())) for folder in folders}
    assert len(told) == len(given_folders), "each has its own times"


def test_machines_behind_links_of_one_name_have_names_of_their_own(freestone: Tool, tmp_path: Path) -> None:
    for seed, folder in enumerate(("real/y", "other/y", "third/x"), start=1):
        measured(tmp_path / folder, seed)
    (tmp_path / "x").symlink_to("real/y")
    done = freestone("report", "x", "other/y", "third/x", "--no-html", "--json")
    assert (done.returncode, len(json.loads(done.stdout))) == (0, 3)
    names = side_by_side.names([tmp_path / "x", tmp_path / "other/y", tmp_path / "third/x"])
    assert len(set(names)) == 3


def test_results_of_one_workload_stand_side_by_side_and_one_that_differs_is_named(
    freestone: Tool, tmp_path: Path
) -> None:
    machine = store.read_experiment(measured(tmp_path / "monday", 1)).machine
    for seed, name, timeout_s in ((2, "friday", None), (3, "other", 7.0)):
        head = store.read_experiment(measured(tmp_path / name, seed))
        own = {"machine": machine, "timeout_s": timeout_s, "id": f"{head.id}-{name}"}
        (tmp_path / name / store.EXPERIMENT_FILE).write_text(head.model_copy(update=own).model_dump_json())
        trials = tmp_path / name / store.TRIALS_FILE
        trials.write_text(trials.read_text().replace(head.id, f"{head.id}-{name}"))
    done = freestone("report", "monday", "friday", "other", "--no-html")
    told = " ".join(done.stdout.split())
    assert done.returncode == 0, done.stderr
    assert "json-sqlite: 2 results of 1 machine" in told
    assert "monday, friday are one machine, measured more than once." in told
    assert "Left out: other: another timeout: 7.0, not none." in told


PARTS = st.sampled_from(["a", "b", "x", "a-x", "x-2", "a-x-2", "a x", ".", "..", "-", "ü"])
FOLDERS = st.lists(PARTS, min_size=1, max_size=3).map("/".join)


@given(st.lists(FOLDERS.map(Path), unique_by=Path.resolve))
def test_names_are_unlike_each_other(folders: list[Path]) -> None:
    for told in (side_by_side.names(folders), side_by_side.folder_names(folders)):
        assert len(set(told)) == len(folders)
    assert not any("/" in name or name.startswith(("-", ".")) or not name for name in told)


def test_what_cannot_be_written_any_more_is_still_told(freestone: Tool, tmp_path: Path) -> None:
    place = make_results().write(tmp_path / "results")
    whole = freestone("report", place, "--no-html")
    (place / store.SUMMARY_FILE).unlink(missing_ok=True)
    (place / store.SUMMARY_FILE).mkdir()  # as good as a disk that takes nothing, also for root
    done = freestone("report", place, "--no-html")
    assert (done.returncode, done.stdout) == (0, whole.stdout)
    assert "cannot write" in done.stderr
    assert done.stderr.count("\n") == 1
