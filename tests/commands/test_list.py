"""``freestone list``: what was measured so far, whatever state its folders are in."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from freestone.records import store
from freestone.records.schema import Experiment

Tool = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.xdist_group("list")  # what they share is made once

SUITE = """
title = "two that end at once"
[[workload]]
name = "empty-{n}"
command = ["true", "{n}"]
matrix = { n = [1, 2] }
"""


@pytest.fixture(scope="module")
def measured(forked_tool: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of results: a comparison of four rounds, then a suite."""
    place = tmp_path_factory.mktemp("list")
    (place / "mine.toml").write_text(SUITE)
    for words in (
        ["compare", "-a", "freestone", "-n", "4", "--no-report", "--", "echo", "a b"],
        ["bench", "-a", "freestone", "mine.toml", "-n", "1"],
    ):
        done = forked_tool.call(words, place, forked_tool.environment, 120)
        assert done.returncode == 0, done.stderr
    for folder in (place / "results").iterdir():
        verb = store.read_experiment(folder).command_line[1]
        _head(folder, created_at=f"2026-11-2{1 if verb == 'bench' else 0}T13:15:00+00:00")
    return Path(place / "results")


@pytest.fixture
def results(measured: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(measured, tmp_path / "results"))


def _rows(freestone: Tool, *more: str) -> list[dict[str, Any]]:
    done = freestone("list", "--json", *more)
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def _folders(results: Path) -> tuple[Path, Path]:
    """The comparison's and the suite's."""
    compared, suite = sorted(results.iterdir(), key=lambda each: store.read_experiment(each).created_at)
    return compared, suite


def test_each_result_says_what_it_is_how_far_it_came_and_who_won(freestone: Tool, results: Path) -> None:
    compared, suite = _folders(results)
    done = freestone("list")
    assert (done.returncode, done.stderr) == (0, "")
    newer, older = done.stdout.split("\n\n")
    assert newer.splitlines()[0] == f"results/{suite.name}"
    assert "bench mine.toml (2 workloads)" in newer
    assert "complete: 1 of 1 rounds" in newer
    assert older.splitlines()[0] == f"results/{compared.name}"
    assert "complete: 4 of 4 rounds" in older
    assert "compare -- echo 'a b'" in older
    assert "glibc, freestone" in older
    told = " ".join(older.split())
    assert store.read_summary(compared).headline in told
    assert "go on with" not in done.stdout


def test_json_holds_the_same_and_whole(freestone: Tool, results: Path) -> None:
    compared, suite = _folders(results)
    newer, older = _rows(freestone)
    assert (newer["name"], older["name"]) == (suite.name, compared.name)
    assert (older["command"], older["suites"], newer["suites"]) == (["echo", "a b"], None, ["mine.toml"])
    assert older["configurations"] == ["glibc", "freestone"]
    assert (older["rounds_complete"], older["rounds"], older["state"]) == (4, 4, "complete")
    assert older["headline"] == store.read_summary(compared).headline
    assert [each["folder"] for each in _rows(freestone, "--results", str(compared))] == [str(compared)]


def test_a_shell_s_narrow_terminal_cuts_nothing_off(freestone: Tool, results: Path) -> None:
    done = freestone("list", env={"COLUMNS": "40"})
    assert max(len(line) for line in done.stdout.splitlines() if not line.startswith("results/")) <= 40
    compared, _ = _folders(results)
    assert store.read_summary(compared).headline in " ".join(done.stdout.split())


def test_what_was_interrupted_says_how_to_go_on_and_what_goes_on_is_running(freestone: Tool, results: Path) -> None:
    compared, _ = _folders(results)
    trials = compared / store.TRIALS_FILE
    trials.write_bytes(b"".join(trials.read_bytes().splitlines(keepends=True)[:5]))  # a round has three
    (compared / store.SUMMARY_FILE).unlink()
    row = _rows(freestone)[1]
    assert (row["state"], row["rounds_complete"], row["headline"]) == ("interrupted", 1, None)
    assert f"go on with: freestone compare --resume results/{compared.name}" in freestone("list").stdout
    with trials.open("ab") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        if not store.is_being_written(compared):
            pytest.skip("/proc/locks does not show the locks of other processes here")
        assert _rows(freestone)[1]["state"] == "running"
    assert not store.is_being_written(compared)


def test_a_summary_of_before_it_went_on_is_no_answer(freestone: Tool, results: Path) -> None:
    compared, _ = _folders(results)
    _head(compared, rounds=6)
    assert _rows(freestone)[1]["headline"] == store.read_summary(compared).headline, "four of six rounds, and of four"
    trials = compared / store.TRIALS_FILE
    more = [json.loads(line) for line in trials.read_bytes().splitlines()]
    lines = [json.dumps({**each, "round": 4}) for each in more if each["round"] == 0]
    trials.write_text(trials.read_text() + "\n".join(lines) + "\n")
    row = _rows(freestone)[1]
    assert (row["state"], row["rounds_complete"], row["headline"]) == ("interrupted", 5, None)


def test_within_a_time_budget_whole_rounds_are_complete(freestone: Tool, results: Path) -> None:
    compared, _ = _folders(results)
    _head(compared, rounds=50, time_budget_s=30.0)
    assert _rows(freestone)[1]["state"] == "complete"
    assert "complete: 4 rounds within 30 s" in freestone("list").stdout
    trials = compared / store.TRIALS_FILE
    trials.write_bytes(b"".join(trials.read_bytes().splitlines(keepends=True)[:-1]))
    assert _rows(freestone)[1]["state"] == "interrupted"


def test_damaged_folders_are_a_line_each_and_stop_nothing(freestone: Tool, results: Path) -> None:
    compared, suite = _folders(results)
    (compared / store.EXPERIMENT_FILE).write_text("{")
    for name in ("20261120T131500Z-lost", "pictures"):
        (results / name).mkdir()
    (results / "all.json").write_text("{}")
    with (suite / store.TRIALS_FILE).open("a") as log:
        log.write("{half a rec\n")
    _head(suite, rounds=2)
    done = freestone("list")
    assert done.returncode == 0
    lines = sorted(done.stderr.splitlines())
    assert len(lines) == 3
    assert "20261120T131500Z-lost holds no experiment.json" in lines[0]
    assert f"{compared.name}/experiment.json is damaged" in lines[1]
    assert "1 damaged, left out" in lines[2]
    assert [line for line in done.stdout.splitlines() if line.startswith("results/")] == [f"results/{suite.name}"]
    rows = _rows(freestone)
    assert [each["state"] for each in rows] == ["interrupted", "damaged", "damaged"]
    assert all(each["reason"] for each in rows)


@pytest.mark.parametrize("made", [True, False])
def test_without_results_one_line_says_how_to_get_some(freestone: Tool, tmp_path: Path, made: bool) -> None:
    if made:
        (tmp_path / "results").mkdir()
    done = freestone("list")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (0, "", 1)
    assert "no results in results yet; 'freestone compare -- CMD' makes the first" in done.stderr
    assert freestone("list", "--json").stdout == "[]\n"


@pytest.mark.parametrize(("place", "said"), [("nowhere", "does not exist"), ("file", "cannot read file: not a dir")])
def test_a_folder_that_is_none_is_one_line(freestone: Tool, tmp_path: Path, place: str, said: str) -> None:
    (tmp_path / "file").touch()
    done = freestone("list", "--results", place)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (5, "", 1)
    assert said in done.stderr


@pytest.fixture
def suites_of(freestone: Tool, results: Path) -> Callable[[list[str]], list[str]]:
    """``suites_of(words)`` is what is listed of a bench that was typed so."""
    _, suite = _folders(results)

    def listed(words: list[str]) -> list[str]:
        _head(suite, command_line=["freestone", "bench", *words])
        found: list[str] = _rows(freestone)[0]["suites"]
        return found

    return listed


@pytest.mark.parametrize(
    ("typed", "suites"),
    [
        ("field apps", ["field", "apps"]),
        ("-a glibc field --quick apps -n 3", ["field", "apps"]),
        ("--only=w* field --name field", ["field"]),
        ("all --quick", ["mine"]),
    ],
)
def test_suites_are_told_from_options(
    suites_of: Callable[[list[str]], list[str]], typed: str, suites: list[str]
) -> None:
    assert suites_of(typed.split()) == suites


def _head(folder: Path, **changes: object) -> None:
    """Changes what was asked for."""
    path = folder / store.EXPERIMENT_FILE
    head = Experiment.model_validate_json(path.read_bytes()).model_copy(update=changes)
    path.write_text(head.model_dump_json())


def test_the_folder_may_be_typed_alone(freestone: Tool, results: Path) -> None:
    assert freestone("list", "results").stdout == freestone("list").stdout != ""
    both = freestone("list", "results", "--results", "other")
    assert (both.returncode, both.stderr) == (2, "freestone: results are of one folder: results or --results other\n")


@pytest.mark.parametrize(
    "words",
    [["report", "results"], ["compare", "--resume", "results"], ["diff", "results", "results"]],
)
def test_the_folder_of_all_results_is_no_experiment(freestone: Tool, results: Path, words: list[str]) -> None:
    newest = sorted(results.iterdir())[-1].name
    done = freestone(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"freestone: results holds several; give one of them, as in results/{newest}\n"
