"""``freestone tune`` on real programs: what it finds and keeps, how it goes on after whatever has ended it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from answers import said

from freestone.records import store
from freestone.tuning import kept

Tool = Callable[..., subprocess.CompletedProcess[str]]
CompileC = Callable[..., Path]

CHURN = """
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    for (int i = 0; i < 30; i++) {
        char *matrix = malloc(40 << 20);
        for (int at = 0; at < 40 << 20; at += 65536) ((volatile char *)matrix)[at] = 1;
        free(matrix);
    }
    puts("done");
    return 0;
}
"""
"""Blocks that are too large for glibc's threshold to follow: mapped and unmapped each time."""


@pytest.fixture
def churn(compile_c: CompileC) -> Path:
    return compile_c(CHURN, "-fno-builtin", name="churn")


@pytest.mark.long
def test_a_setting_that_helps_is_found_confirmed_and_printed_with_lines_to_copy(
    freestone: Tool, churn: Path, only_folder: Callable[[], Path]
) -> None:
    done = freestone("tune", "--goal", "time", "--time-budget", "40", "-a", "glibc", "--", churn)
    assert done.returncode == 0, done.stderr
    assert "Tried beside glibc: " in done.stdout
    assert "Best for time: glibc:" in " ".join(done.stdout.split())
    assert "The Pareto front" in done.stdout
    assert "freestone run -a glibc:" in done.stdout
    assert "Kubernetes  env:" in done.stdout
    assert "search 1: " in done.stderr
    folder = only_folder()
    told = said(freestone("tune", "--resume", folder, "--json"))
    assert told["told_apart"]
    assert told["best"].startswith("glibc:")
    assert told["best"] in told["front"]
    best = next(each for each in told["finalists"] if each["configuration"] == told["best"])
    assert best["time"]["high"] < 0.9
    assert best["settings"].keys() & {"MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_"}
    assert any(str(churn) in line for line in best["use"])
    batches = kept.batches(folder)
    assert batches
    assert {each.configuration for each in store.read_trials(folder).records} >= {"glibc", told["best"]}
    searched = {record.experiment for each in batches for record in each.records}
    assert store.read_experiment(folder).id not in searched


@pytest.mark.long
def test_where_nothing_differs_nothing_is_told_apart(freestone: Tool) -> None:
    done = freestone("tune", "--time-budget", "12", "-a", "glibc", "--", "sleep", "0.02")
    assert done.returncode == 0, done.stderr
    assert "Nothing told apart: " in done.stdout
    assert "To use" not in done.stdout


@pytest.mark.long
def test_a_search_that_was_killed_goes_on(
    freestone: Tool, churn: Path, command: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    words = [*command, "tune", "--time-budget", "15", "-a", "glibc", "--", str(churn)]
    process = subprocess.Popen(
        words, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: measured(tmp_path) >= 5)
    finally:
        process.kill()
        process.wait()
    (folder,) = (tmp_path / "results").iterdir()
    before = [record for each in kept.batches(folder) for record in each.records]
    listed = freestone("list")
    assert "interrupted" in listed.stdout
    assert f"tune --resume results/{folder.name}" in " ".join(listed.stdout.split())
    told = said(freestone("tune", "--resume", folder, "--json"))
    assert told["finalists"]
    after = [record for each in kept.batches(folder) for record in each.records]
    assert after[: len(before)] == before
    slots = [(each.experiment, each.configuration, each.round, each.repeat) for each in after]
    assert len(set(slots)) == len(slots)
    again = said(freestone("tune", "--resume", folder, "--json"))
    assert (again["tried"], again["front"], again["best"]) == (told["tried"], told["front"], told["best"])
    assert measured(tmp_path) == len(after)


@pytest.mark.long
def test_ctrl_c_keeps_what_was_measured_and_says_how_to_go_on(
    churn: Path, command: list[str], environment: dict[str, str], tmp_path: Path, heard_signals: None
) -> None:
    words = [*command, "tune", "--time-budget", "60", "-a", "glibc", "--", str(churn)]
    process = subprocess.Popen(
        words, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        wait_for(lambda: measured(tmp_path) >= 3)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Traceback" not in told
    (folder,) = (tmp_path / "results").iterdir()
    count = measured(tmp_path)
    assert told.splitlines()[-1].startswith(f"freestone: interrupted; {count} finished trials kept, go on with: ")
    assert told.splitlines()[-1].endswith(f" tune --resume results/{folder.name}")


def measured(place: Path) -> int:
    """Trials of the one search below a folder."""
    return sum(len(file.read_text().splitlines()) for file in place.glob("results/*/search/*/trials.jsonl"))


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 100
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_what_fails_everywhere_is_measured_nowhere(freestone: Tool) -> None:
    done = freestone("tune", "--time-budget", "10", "-a", "glibc", "--", "false")
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith("freestone: nothing could be measured: ")


def test_a_program_that_is_not_there_is_told_before_anything_is_made(freestone: Tool, tmp_path: Path) -> None:
    done = freestone("tune", "--", "no-such-program")
    assert (done.returncode, done.stderr) == (127, "freestone: program 'no-such-program' not found\n")
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--time-budget", "0", "--", "true"], "--time-budget: it takes from 1 ms to 365 d, not '0'"),
        (["-a", "nobody", "--", "true"], "unknown allocator 'nobody'"),
        (["--resume", "."], "holds no tuning.json; give a results folder of freestone tune"),
        ([], "no program given; write it after --, as in: freestone tune -- python3 program.py"),
    ],
)
def test_wrong_use_is_one_line(freestone: Tool, words: list[str], told: str) -> None:
    done = freestone("tune", *words)
    assert done.returncode in (2, 5)
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.long
def test_a_search_that_goes_on_is_no_other_one(freestone: Tool, tmp_path: Path) -> None:
    assert freestone("tune", "--time-budget", "3", "-a", "glibc", "--", "true").returncode == 0
    (folder,) = (tmp_path / "results").iterdir()
    done = freestone("tune", "--resume", folder, "--goal", "time")
    assert done.returncode == 2
    assert "leave out --goal" in done.stderr
    done = freestone("tune", "--resume", folder, "--", "false")
    assert done.returncode == 2
    assert "it tuned another command" in done.stderr


def test_without_optuna_one_line_says_how_to_get_it(tmp_path: Path, environment: dict[str, str]) -> None:
    code = (
        "import sys; sys.modules['optuna'] = None\nfrom freestone.cli import main\n"
        "main(['tune', '--time-budget', '3', '--', 'true'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert done.stderr == "freestone: a search needs: pip install '.[tune]' in the clone\n"
    assert not (tmp_path / "results").exists()
