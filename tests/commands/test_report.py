"""What a report writes is of all that it was given, or it says of what it is not."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

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


def test_folders_of_one_name_are_written_apart(freestone: Tool, tmp_path: Path) -> None:
    orders = [fleet.write(tmp_path / name, 1, seed=seed, rounds=5) for seed, name in enumerate("ab", start=1)]
    results = [store.places(order)[0] for order in orders]
    of_one, of_other = (store.read_experiment(folder).id for folder in results)
    for file in (store.EXPERIMENT_FILE, store.TRIALS_FILE):  # another measurement, and no copy
        kept = (results[1] / file).read_text()
        (results[1] / file).write_text(kept.replace(of_other, f"{of_one}-other"))
    assert results[0].name == results[1].name
    done = freestone("report", *results, "--no-html", "--benchmark-json", tmp_path / "times")
    assert done.returncode == 0, done.stderr
    folders = sorted((tmp_path / "times").iterdir())
    assert len(folders) == 2
    told = [{file.name: json.loads(file.read_text()) for file in folder.iterdir()} for folder in folders]
    assert told[0] != told[1], "each has its own times"


def test_what_cannot_be_written_any_more_is_still_told(freestone: Tool, tmp_path: Path) -> None:
    (place,) = store.places(fleet.write(tmp_path, 1, seed=1, rounds=5))
    whole = freestone("report", place, "--no-html")
    (place / store.SUMMARY_FILE).unlink(missing_ok=True)
    (place / store.SUMMARY_FILE).mkdir()  # as good as a disk that takes nothing, also for root
    done = freestone("report", place, "--no-html")
    assert (done.returncode, done.stdout) == (0, whole.stdout)
    assert "cannot write" in done.stderr
    assert done.stderr.count("\n") == 1
