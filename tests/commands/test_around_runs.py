"""Commands around the runs, warm-up runs and standard input, as a user asks for them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from freestone.records import store
from freestone.records.schema import Stages
from freestone.trials import permissions

Tool = Callable[..., subprocess.CompletedProcess[str]]

ASKED = ("compare", "-a", "freestone", "-n", "2", "--no-report")
RUNS = 6
"""Two rounds of libfreestone and of the baseline, which runs twice."""


@pytest.mark.long
def test_a_program_finds_what_its_commands_make_and_nothing_of_them_is_measured(
    freestone: Tool, only_folder: Callable[[], Path], tmp_path: Path
) -> None:
    (tmp_path / "big").write_text("line\n" * 40_000)  # more than a pipe holds
    program = "mkdir out && wc -l > out/lines && printf r >> log && cat out/lines"
    done = freestone(
        *ASKED,
        *("--setup", "printf s >> log", "--prepare", 'rm -rf out; printf p >> log; [ -z "$LD_PRELOAD" ]'),
        *("--conclude", 'printf c >> log; test "$(cat out/lines)" = 40000', "--cleanup", "rm -r out; printf e >> log"),
        *("--warmup", "2", "--input", "big", "--", "sh", "-c", program),
    )
    assert done.returncode == 0, done.stderr
    rehearsals = 1 if permissions().perf else 2
    assert (tmp_path / "log").read_text() == "s" + "prc" * (rehearsals + 4 + RUNS) + "e"
    assert not (tmp_path / "out").exists()
    experiment, records = store.read_experiment(only_folder()), store.read_trials(only_folder()).records
    assert experiment.workloads[0].stages.conclude is not None
    assert (experiment.workloads[0].warmup, len(records)) == (2, RUNS)
    for record in records:
        assert record.status == "ok", record.reason
        assert {Path(process.exe).name for process in record.proof.processes} <= {"sh", "dash", "mkdir", "wc", "cat"}


def test_a_prepare_that_fails_once_costs_that_run_alone(
    freestone: Tool, only_folder: Callable[[], Path], tmp_path: Path
) -> None:
    last = RUNS + (1 if permissions().perf else 2)
    prepare = f"echo >> n; [ $(wc -l < n) != {last} ] || {{ echo one; echo no room >&2; exit 3; }}"
    done = freestone(*ASKED, "--prepare", prepare, "--conclude", "echo >> m", "--", "true")
    assert done.returncode in (3, 4), "the one that failed may be the baseline's"
    records = store.read_trials(only_folder()).records
    assert [record.status for record in records] == ["ok"] * (RUNS - 1) + ["failed"]
    assert records[-1].reason == "prepare failed with exit status 3: no room"
    assert records[-1].stage_output == "one\nno room\n"
    assert "failed: prepare failed with exit status 3: no room\n  | one\n  | no room\n" in done.stderr
    assert "1 of " in done.stdout
    assert len((tmp_path / "m").read_text()) == last - 1, "nothing is concluded that was not run"


@pytest.mark.long
def test_what_cannot_be_set_up_is_told_with_the_line_that_tries_again(
    freestone: Tool, only_folder: Callable[[], Path], tmp_path: Path
) -> None:
    setup = "[ -e ready ] || { echo no compiler; exit 2; }"
    done = freestone(*ASKED, "--setup", setup, "--cleanup", "touch cleaned", "--", "true")
    assert done.returncode == 3
    again = f"go on with: freestone compare --resume results/{only_folder().name}"
    assert done.stderr.splitlines()[-2:] == [
        "freestone: true: setup failed with exit status 2: no compiler; it is not run now",
        f"freestone: not measured, since setup failed: true; {again}",
    ]
    assert (tmp_path / "cleaned").exists()
    assert store.read_trials(only_folder()).records == []
    (tmp_path / "ready").touch()
    assert freestone("compare", "--resume", only_folder(), "--no-report").returncode == 0
    assert len(store.read_trials(only_folder()).records) == RUNS


def test_a_cleanup_that_fails_or_takes_the_program_away_loses_nothing(
    freestone: Tool, only_folder: Callable[[], Path], tmp_path: Path
) -> None:
    make = "printf '#!/bin/sh\\nexit 0\\n' > made; chmod +x made"
    done = freestone(*ASKED, "--setup", make, "--cleanup", "rm made; exit 9", "--", "./made")
    assert done.returncode == 0, done.stderr
    assert "freestone: made: cleanup failed with exit status 9; what was measured is kept\n" in done.stderr
    assert not (tmp_path / "made").exists()
    assert store.read_summary(only_folder()).rounds_complete == 2


@pytest.mark.long
def test_the_time_limit_holds_for_a_prepare_too(freestone: Tool, only_folder: Callable[[], Path]) -> None:
    done = freestone(*ASKED, "--timeout", "0.5", "--prepare", "sleep 600", "--", "true")
    assert done.returncode == 3
    assert {record.reason for record in store.read_trials(only_folder()).records} == {
        "prepare was still running after 0.5 s"
    }


@pytest.mark.usefixtures("heard_signals")
@pytest.mark.parametrize("stage", ["--setup", "--prepare"])
def test_ctrl_c_in_a_command_ends_it_and_cleans_up(
    tmp_path: Path, command: list[str], environment: dict[str, str], only_folder: Callable[[], Path], stage: str
) -> None:
    words = [*ASKED, stage, "echo $$ > hanging; sleep 600", "--cleanup", "touch cleaned", "--", "true"]
    tool = subprocess.Popen([*command, *words], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        until = time.monotonic() + 60
        while not (tmp_path / "hanging").exists() and time.monotonic() < until:
            time.sleep(0.02)
        time.sleep(0.2)
        tool.send_signal(signal.SIGINT)
        _, said = tool.communicate(timeout=60)
    finally:
        tool.kill()
    assert tool.returncode == 130, said
    assert said.splitlines()[-1].startswith("freestone: interrupted; 0 finished trials kept, go on with: ")
    assert (tmp_path / "cleaned").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "hanging").read_text()), 0)
    assert store.read_experiment(only_folder()).workloads[0].stages.cleanup == "touch cleaned"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--prepare", " "), "--prepare takes a shell command"),
        (("--warmup", "-1"), "--warmup takes a number of runs from 0 to 1000, not -1"),
        (("--input", "nowhere"), "no such file or directory"),
        (("--input", "/"), "the input / is a folder"),
    ],
)
def test_what_cannot_be_around_a_run_is_one_line_before_anything_is_written(
    freestone: Tool, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    done = freestone(*ASKED, *words, "--", "true")
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "results").exists()


def test_resume_keeps_what_is_around_the_runs_and_refuses_other_input(
    freestone: Tool, only_folder: Callable[[], Path], tmp_path: Path
) -> None:
    (tmp_path / "in").write_text("one")
    assert freestone(*ASKED, "--input", "in", "--conclude", "true", "--", "cat").returncode == 0
    folder = only_folder()
    assert store.read_experiment(folder).workloads[0].stages == Stages(conclude="true")
    done = freestone("compare", "--resume", folder, "--conclude", "true", "--warmup", "1")
    assert (done.returncode, "leave out --conclude, --warmup" in done.stderr) == (2, True)
    (tmp_path / "in").write_text("two")
    done = freestone("compare", "--resume", folder)
    assert done.returncode == 2
    assert f"cannot resume {folder}: the input {tmp_path}/in has other content now" in done.stderr


@pytest.mark.long
def test_diff_refuses_results_with_something_else_around_the_runs(freestone: Tool, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("one")
    for number, words in enumerate([(), ("--prepare", "true"), ("--warmup", "1"), ("--input", "in")]):
        asked = ("compare", "-a", "glibc", "-n", "1", "--no-report", "--results", f"r{number}")
        assert freestone(*asked, *words, "--", "cat").returncode == 0
    folders = [next((tmp_path / f"r{number}").iterdir()) for number in range(4)]
    for folder, why in zip(
        folders[1:], ("another prepare", "0 and 1 warm-up runs", "an input on one side only"), strict=True
    ):
        done = freestone("diff", folders[0], folder)
        assert done.returncode == 2
        assert done.stderr == f"freestone: no workload is the same in both results: workload cat: {why}\n"
