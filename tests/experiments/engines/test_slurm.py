"""What a shared folder shows late is waited for, and what it never shows is one line."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from freestone.experiments.engines import Unreachable, slurm
from freestone.records import store
from freestone.records.schema import Order, Place

ORDER = Order(id="x", created_at="", freestone_version="", words=["compare", "--", "true"], directory="/", places=[])
PLACE = Place(name="slurm", engine="slurm")


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cluster whose jobs have ended as soon as they are asked for; ``job`` is what the folder shows of one, later."""
    tools = tmp_path / "tools"
    tools.mkdir()
    ended = "echo JobId=1 JobState=COMPLETED Reason=None ExitCode=0:0"
    scripts = {"sbatch": f"echo 1; sh {tools}/job >/dev/null 2>&1 &", "scontrol": ended, "job": "true"}
    for name, line in scripts.items():
        (tools / name).write_text(f"#!/bin/sh\n{line}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setattr(slurm, "LOOK_S", 0.05)
    return tools / "job"


def _carried_out(folder: Path) -> slurm.Carried:
    return slurm.Slurm().carry_out(ORDER, PLACE, folder, lambda line: None, threading.Event())


def test_a_folder_that_comes_late_is_waited_for_with_all_that_is_in_it(cluster: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shared" / "slurm"
    folder.parent.mkdir()
    files = [store.EXPERIMENT_FILE, store.TRIALS_FILE, store.SUMMARY_FILE]
    cluster.write_text(
        f"#!/bin/sh\nsleep 0.5; mkdir {folder}\n" + "".join(f"sleep 0.2; echo x >{folder}/{name}\n" for name in files)
    )
    assert _carried_out(folder).status == 0
    assert sorted(each.name for each in folder.iterdir()) == sorted(files)


def test_a_folder_that_never_comes_is_one_line(cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "LATE_S", 0.3)
    with pytest.raises(Unreachable, match="shows nothing of its job: is it shared by the nodes") as error:
        _carried_out(tmp_path / "slurm")
    assert "\n" not in str(error.value)
