"""What a report writes is of all that it was given, or it says of what it is not."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.commands import side_by_side
from freestone.records import store
from simulated_fleet import fleet

Tool = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("machines", [2, 20])
@pytest.mark.parametrize("option", ["--export-csv", "--export-json", "--export-markdown"])
def test_no_file_holds_one_place_of_many(freestone: Tool, tmp_path: Path, machines: int, option: str) -> None:
    order = fleet.write(tmp_path, machines, seed=1, rounds=5)
    done = freestone("report", order, "--no-html", option, tmp_path / "written")
    first = store.places(order)[0]
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"freestone: {option}: of one place, as in freestone report {first} {option} ...\n"
    assert not (tmp_path / "written").exists()
    alone = freestone("report", first, "--no-html", option, tmp_path / "written")
    assert (alone.returncode, (tmp_path / "written").exists()) == (0, True)


def measured(folder: Path, seed: int) -> Path:
    """A result of one machine, which is no copy of another one's."""
    (made,) = store.places(fleet.write(folder.parent / f"order-{seed}", 1, seed=seed, rounds=5))
    own = store.read_experiment(made).id
    folder.parent.mkdir(parents=True, exist_ok=True)
    made.rename(folder)
    for file in (store.EXPERIMENT_FILE, store.TRIALS_FILE):
        (folder / file).write_text((folder / file).read_text().replace(own, f"{own}-{seed}"))
    return folder


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
        changed = head.model_copy(update={"machine": machine, "timeout_s": timeout_s})
        (tmp_path / name / store.EXPERIMENT_FILE).write_text(changed.model_dump_json())
    done = freestone("report", "monday", "friday", "other", "--no-html")
    told = " ".join(done.stdout.split())
    assert done.returncode == 0, done.stderr
    assert "solve on 2 of 3 places, one machine" in told
    assert "monday and friday are one machine, measured more than once." in told
    assert "another timeout: 7.0, not none" in told


PARTS = st.sampled_from(["a", "b", "x", "a-x", "x-2", "a-x-2", "a x", ".", "..", "-", "ü"])
FOLDERS = st.lists(PARTS, min_size=1, max_size=3).map("/".join)


@given(st.lists(FOLDERS.map(Path), unique_by=Path.resolve))
def test_names_are_unlike_each_other(folders: list[Path]) -> None:
    for told in (side_by_side.names(folders), side_by_side.folder_names(folders)):
        assert len(set(told)) == len(folders)
    assert not any("/" in name or name.startswith(("-", ".")) or not name for name in told)


def test_what_cannot_be_written_any_more_is_still_told(freestone: Tool, tmp_path: Path) -> None:
    (place,) = store.places(fleet.write(tmp_path, 1, seed=1, rounds=5))
    whole = freestone("report", place, "--no-html")
    (place / store.SUMMARY_FILE).unlink(missing_ok=True)
    (place / store.SUMMARY_FILE).mkdir()  # as good as a disk that takes nothing, also for root
    done = freestone("report", place, "--no-html")
    assert (done.returncode, done.stdout) == (0, whole.stdout)
    assert "cannot write" in done.stderr
    assert done.stderr.count("\n") == 1
