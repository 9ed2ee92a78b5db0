"""Suites at several places: what one lacks costs nobody else anything, and the whole stands beside each workload."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from freestone.records import store

Tool = Callable[..., subprocess.CompletedProcess[str]]

SUITE = """
title = "two little programs"

[[workload]]
name = "one"
command = ["true"]

[[workload]]
name = "other"
command = ["echo", "said"]

[[setting]]
name = "few"
allocators = ["mimalloc3"]
environment = { NONESUCH = "1" }
"""


@pytest.fixture
def suite(tmp_path: Path) -> str:
    (tmp_path / "mine.toml").write_text(SUITE)
    return "mine.toml"


def trials(folder: Path) -> int:
    return len(store.read_trials(folder).records)


def test_the_same_line_again_measures_what_is_missing(freestone: Tool, tmp_path: Path, suite: str) -> None:
    line = ["bench", suite, "--into", "here", "-n", "1", "-a", "glibc,mimalloc3", "--settings", "few"]
    done = freestone(*line)
    assert done.returncode == 4, done.stderr
    assert "left out here: allocator 'mimalloc3' is not available" in done.stderr
    assert trials(tmp_path / "here") == 4
    kept = (tmp_path / "here" / store.TRIALS_FILE).read_bytes()
    again = freestone(*line)
    assert (again.returncode, "is complete" in again.stderr) == (4, True), again.stderr
    assert (tmp_path / "here" / store.TRIALS_FILE).read_bytes() == kept
    other = freestone(*line, "--only", "one")
    assert other.returncode == 2
    assert "it measured other workloads (other)" in other.stderr


def test_an_order_of_a_suite_goes_on_by_its_own_verb(freestone: Tool, tmp_path: Path, suite: str) -> None:
    done = freestone("bench", suite, "--on", "local", "-n", "1", "-a", "glibc")
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "results").iterdir()
    assert folder.name.endswith("-mine")
    assert trials(folder / "local") == 4
    assert store.read_order(folder).words[0] == "bench"
    assert (folder / store.REPORT_FILE).exists()
    (folder / "local" / store.TRIALS_FILE).write_text("")
    again = freestone("bench", "--resume", str(folder))
    assert again.returncode == 0, again.stderr
    assert trials(folder / "local") == 4


def test_a_place_that_cannot_be_reached_is_one_line_and_the_line_that_goes_on(
    freestone: Tool, tmp_path: Path, suite: str
) -> None:
    done = freestone("bench", suite, "--on", "ssh:nowhere.invalid", "-n", "1", "-a", "glibc")
    assert done.returncode == 3
    assert "go on with: freestone bench --resume results/" in done.stderr.replace("python -m freestone", "freestone")
    assert done.stderr.count("\n") == 2, done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nonesuch", "--on", "local"], "nonesuch"),
        (["--on", "local"], "no suite given"),
        (["all", "--on", "local"], "'all' makes a folder of each suite, and a place has one: name the suites"),
        (["all", "--into", "here"], "'all' makes a folder of each suite, and a place has one: name the suites"),
        (["field", "--on", "local", "--markdown", "x.md"], "--markdown: that is of one machine's results"),
        (["field", "--on", "local", "--subject", "glibc"], "--subject: that is of one machine's results"),
        (["field", "--on", "cloud"], "--on takes local, ssh, slurm, dask"),
    ],
)
def test_what_cannot_be_ordered_is_one_line(freestone: Tool, tmp_path: Path, words: list[str], told: str) -> None:
    done = freestone("bench", *words)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "results").exists()
