"""Commands around the runs: what they find, how they fail, and that nothing is left of one that is broken off."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from freestone.records.schema import Input, Stages, TrialRecord, Workload
from freestone.trials import StageFailure, run_stage

Try = Callable[..., TrialRecord]

WORKLOAD = Workload(name="work", command=["true"], environment={"ASKED": "yes"})


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., StageFailure | None]:
    def go(command: str | None, timeout_s: float | None = 60, workload: Workload = WORKLOAD) -> StageFailure | None:
        here = workload.model_copy(update={"directory": str(tmp_path)})
        failure = run_stage("prepare", command, here, timeout_s=timeout_s, scratch=tmp_path)
        assert not [file for file in tmp_path.iterdir() if file.name.startswith("tmp")], "its output is not left behind"
        return failure

    return go


def test_what_succeeds_says_nothing_and_no_command_is_none(run: Callable[..., StageFailure | None]) -> None:
    assert run("echo something; echo more >&2") is None
    assert run(None) is None


def test_it_runs_where_the_program_runs_with_its_environment_and_without_any_allocator_s(
    run: Callable[..., StageFailure | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    monkeypatch.setenv("LD_PRELOAD", "libnobody.so")
    monkeypatch.setenv("OF_THE_USER", "kept")
    assert run('echo "$ASKED|$OF_THE_USER|$MALLOC_ARENA_MAX|$LD_PRELOAD|$(pwd)" > said; cat >> said') is None
    assert (tmp_path / "said").read_text() == f"yes|kept|||{tmp_path}\n", "standard input is empty"


def test_a_failure_is_one_line_with_its_last_words_and_keeps_what_it_wrote(
    run: Callable[..., StageFailure | None],
) -> None:
    failure = run("echo first; echo second >&2; exit 3")
    assert failure == StageFailure("prepare failed with exit status 3: second", "first\nsecond\n")
    assert run("exit 4") == StageFailure("prepare failed with exit status 4", "")
    assert run("kill -SEGV $$") == StageFailure("prepare was ended by SIGSEGV", "")
    missing = run("no-such-command")
    assert missing is not None
    assert missing.reason.startswith("prepare failed with exit status 127: ")
    assert "\n" not in missing.reason


def test_the_end_of_a_long_output_is_kept(run: Callable[..., StageFailure | None]) -> None:
    failure = run("yes | head -c 1000000; echo the end; exit 1")
    assert failure is not None
    assert failure.reason.endswith(": the end")
    assert len(failure.output) <= 2048


def test_the_time_limit_ends_it_with_all_that_it_has_started(
    run: Callable[..., StageFailure | None], tmp_path: Path
) -> None:
    failure = run("sleep 600 & echo $! > child; wait", 0.3)
    assert failure is not None
    assert failure.reason == "prepare was still running after 0.3 s"
    assert _ends(int((tmp_path / "child").read_text()))


def test_what_asks_the_terminal_does_not_hang(run: Callable[..., StageFailure | None]) -> None:
    """A process that reads a terminal from the background is stopped by the kernel."""
    failure = run("kill -TTIN $$; echo never")
    assert failure is not None
    assert failure.reason == "prepare was stopped, as a program is that asks the terminal: it has none here"


def test_what_it_leaves_in_the_background_goes_on(run: Callable[..., StageFailure | None], tmp_path: Path) -> None:
    assert run("sleep 600 & echo $! > child") is None
    child = int((tmp_path / "child").read_text())
    os.kill(child, 0)
    os.kill(child, signal.SIGKILL)


def test_what_breaks_the_waiting_off_ends_it(
    run: Callable[..., StageFailure | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupted)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            run("echo $$ > child; sleep 600")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert _ends(int((tmp_path / "child").read_text()))


def test_a_folder_that_is_gone_is_one_line(tmp_path: Path) -> None:
    gone = WORKLOAD.model_copy(update={"directory": str(tmp_path / "gone")})
    failure = run_stage("setup", "true", gone, timeout_s=None, scratch=tmp_path)
    assert failure == StageFailure("setup cannot be run: no such file or directory", "")


def test_prepare_and_conclude_stand_around_every_run(attempt: Try, tmp_path: Path) -> None:
    stages = Stages(prepare="echo prepared >> log", conclude="echo concluded >> log")
    record = attempt("sh", "-c", "echo ran >> log", directory=str(tmp_path), stages=stages)
    assert record.status == "ok", record.reason
    said = (tmp_path / "log").read_text().split()
    assert said[-3:] == ["prepared", "ran", "concluded"]
    assert said.count("ran") == said.count("prepared") == said.count("concluded")


def test_without_its_prepare_a_program_is_not_run(attempt: Try, tmp_path: Path) -> None:
    stages = Stages(prepare="echo no room; false", conclude="touch concluded")
    record = attempt("touch", "ran", directory=str(tmp_path), stages=stages)
    assert (record.status, record.reason) == ("failed", "prepare failed with exit status 1: no room")
    assert (record.metrics, record.stage_output) == (None, "no room\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("program", "status", "reason"),
    [
        ("exit 0", "failed", "conclude failed with exit status 9"),
        ("exit 7", "failed", "exit status 7; conclude failed with exit status 9"),
    ],
)
def test_a_conclude_that_fails_makes_the_run_failed(attempt: Try, program: str, status: str, reason: str) -> None:
    record = attempt("sh", "-c", program, stages=Stages(conclude="exit 9"))
    assert (record.status, record.reason) == (status, reason)


def test_every_run_reads_its_input_from_the_beginning(attempt: Try, tmp_path: Path) -> None:
    """More than a pipe holds."""
    (tmp_path / "big").write_bytes(b"0123456789abcde\n" * 100_000)
    for _ in range(2):
        record = attempt("wc", "-c", input=Input(file=str(tmp_path / "big")))
        assert record.status == "ok", record.reason
        assert record.output is not None
        assert record.output.stdout_bytes == len("1600000\n")
    gone = attempt("wc", "-c", input=Input(file=str(tmp_path / "gone")))
    assert (gone.status, gone.reason) == (
        "failed",
        f"the files for the program's input ({tmp_path}/gone) or output cannot be opened: No such file or directory",
    )


def _ends(process: int) -> bool:
    for _ in range(100):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state in "ZX":
            return True
        time.sleep(0.05)
    return False
