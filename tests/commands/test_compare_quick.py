"""``freestone compare --quick``: a real comparison, of which one sentence is on standard output."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from freestone.records import store

Tool = Callable[..., subprocess.CompletedProcess[str]]

PROGRAM = [sys.executable, "-I", "-S", "-c", "print(1)"]


def test_one_sentence_and_a_folder_of_records(freestone: Tool, only_folder: Callable[[], Path]) -> None:
    done = freestone("compare", "--quick", "--time-budget", "4", "-a", "freestone", "--", *PROGRAM)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    assert done.stdout.startswith(("Run it under freestone", "Stay with glibc", "There is no telling yet"))
    folder = only_folder()
    assert store.read_experiment(folder).baseline == "glibc"
    assert len(store.read_trials(folder).records) >= 3, "the first round always is run"
    assert f"freestone report results/{folder.name}" in done.stderr


def test_what_cannot_be_measured_is_no_advice(freestone: Tool) -> None:
    done = freestone("compare", "--quick", "--time-budget", "2", "-a", "freestone", "--", "sh", "-c", "exit 5")
    assert done.returncode == 3
    assert done.stdout.startswith("Nothing could be measured: exit status 5")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--time-budget", "0"], "--time-budget: it takes from 1 ms to 365 d, not '0'"),
        (["-a", "jemaloc"], "unknown allocator 'jemaloc'"),
        (["--command", "ls"], "--quick answers for one program, not 2; leave it out"),
    ],
)
def test_wrong_use(freestone: Tool, tmp_path: Path, options: list[str], said: str) -> None:
    done = freestone("compare", "--quick", *options, "--", *PROGRAM)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
    assert not (tmp_path / "results").exists()
