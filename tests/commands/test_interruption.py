"""Ctrl-C, with real signals to a real process: once stops cleanly, twice at once, and nothing finished is lost."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from freestone.commands.program import tool_as_typed
from freestone.records import store

Start = Callable[[str], subprocess.Popen[str]]

pytestmark = pytest.mark.usefixtures("heard_signals")

# The fifth run and all after it hang; `mark` in the arguments makes the processes of this test findable.
HANGING = 'echo >> runs; if [ $(wc -l < runs) -ge 5 ] && [ ! -e go ]; then touch hanging; sleep "$1"; fi'
# The same, and deaf to being asked.
STUBBORN = 'trap "" INT TERM HUP; ' + HANGING


def _wait_for(condition: Callable[[], bool], what: str) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    pytest.fail(f"{what} did not happen within a minute")


def _processes(mark: str) -> list[int]:
    """Living processes that have the mark in their arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if mark.encode() in arguments and state not in "ZX" and b"freestone" not in arguments:
            found.append(int(entry.name))
    return found


@pytest.fixture
def mark() -> str:
    """Seconds to sleep that no other process sleeps."""
    return f"600.{os.getpid()}{time.monotonic_ns() % 10**6:06d}"


@pytest.fixture
def start(tmp_path: Path, command: list[str], environment: dict[str, str], mark: str) -> Iterator[Start]:
    """Starts a comparison that hangs in its fifth run."""
    tools: list[subprocess.Popen[str]] = []

    def begin(script: str) -> subprocess.Popen[str]:
        arguments = ["compare", "-a", "freestone", "-n", "4", "--no-report", "--", "sh", "-c", script, "sh", mark]
        tool = subprocess.Popen(
            [*command, *arguments],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        tools.append(tool)
        _wait_for(lambda: (tmp_path / "hanging").exists() and bool(_processes(mark)), "the fifth run")
        return tool

    yield begin
    for tool in tools:
        tool.kill()
        tool.communicate()
    for process in _processes(mark):
        os.kill(process, signal.SIGKILL)


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (signal.SIGINT, 130),
        *(pytest.param(*each, marks=pytest.mark.long) for each in ((signal.SIGTERM, 143), (signal.SIGHUP, 129))),
    ],
)
def test_once_stops_cleanly_and_resume_goes_on(
    start: Start,
    freestone: Callable[..., subprocess.CompletedProcess[str]],
    only_folder: Callable[[], Path],
    tmp_path: Path,
    mark: str,
    number: signal.Signals,
    status: int,
) -> None:
    tool = start(HANGING)
    tool.send_signal(number)
    stdout, stderr = tool.communicate(timeout=60)
    assert tool.returncode == status, stderr
    assert _processes(mark) == [], "the running trial is ended"
    reading = store.read_trials(only_folder())
    kept = len(reading.records)
    assert (kept, reading.damage) == (3, []), "the fourth trial, the fifth run, is not kept"
    last = stderr.splitlines()[-1]
    assert re.fullmatch(
        r"freestone: interrupted; 3 finished trials kept, go on with: freestone compare --resume \S+", last
    )
    assert "Traceback" not in stderr
    assert "glibc" in stdout, "what there is is shown"
    (tmp_path / "go").touch()
    done = freestone("compare", "--resume", str(only_folder()), "--no-report")
    assert done.returncode == 0, done.stderr
    records = store.read_trials(only_folder()).records
    assert len(records) == 12
    assert records[:3] == reading.records


@pytest.mark.parametrize(
    ("started", "path", "typed"),
    [
        ("{}/freestone", "{}", "freestone"),
        ("{}/freestone", "/usr/bin", "{}/freestone"),
        # `make compare` has the folder in its PATH, who types the next command has not.
        (".venv/bin/freestone", "{}", ".venv/bin/freestone"),
        ("my tools/freestone", "/usr/bin", "'my tools/freestone'"),
        ("{}/freestone/__main__.py", "/usr/bin", "freestone"),
    ],
)
def test_how_to_go_on_is_told_as_the_tool_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: str, path: str, typed: str
) -> None:
    (tmp_path / "freestone").touch(mode=0o755)
    monkeypatch.setattr("sys.argv", [started.format(tmp_path), "compare"])
    monkeypatch.setenv("PATH", path.format(tmp_path))
    assert tool_as_typed() == typed.format(tmp_path)


@pytest.mark.long
def test_the_whole_foreground_group_gets_a_terminals_ctrl_c(
    start: Start, only_folder: Callable[[], Path], mark: str
) -> None:
    tool = start(HANGING)
    os.killpg(tool.pid, signal.SIGINT)
    _, stderr = tool.communicate(timeout=60)
    assert tool.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert _processes(mark) == []
    assert len(store.read_trials(only_folder()).records) == 3


def test_twice_stops_at_once(start: Start, only_folder: Callable[[], Path], mark: str) -> None:
    tool = start(STUBBORN)
    tool.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert tool.poll() is None, "a program that is deaf to being asked is given some time"
    tool.send_signal(signal.SIGINT)
    _, stderr = tool.communicate(timeout=60)
    assert tool.returncode == 130, stderr
    assert "stopped at once; finished trials are kept" in stderr
    assert "Traceback" not in stderr
    _wait_for(lambda: _processes(mark) == [], "the end of the program")
    reading = store.read_trials(only_folder())
    assert (len(reading.records), reading.damage) == (3, [])


@pytest.mark.long
def test_a_stubborn_program_is_ended_by_one_as_well(start: Start, only_folder: Callable[[], Path], mark: str) -> None:
    tool = start(STUBBORN)
    tool.send_signal(signal.SIGINT)
    _, stderr = tool.communicate(timeout=60)
    assert tool.returncode == 130, stderr
    assert _processes(mark) == []
    assert len(store.read_trials(only_folder()).records) == 3


def test_nothing_finished_is_said_too(
    command: list[str], environment: dict[str, str], tmp_path: Path, only_folder: Callable[[], Path], mark: str
) -> None:
    tool = subprocess.Popen(
        [*command, "compare", "-a", "glibc", "-n", "4", "--no-report", "--", "sleep", mark],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _wait_for(lambda: bool(_processes(mark)), "the first run")
    tool.send_signal(signal.SIGINT)
    stdout, stderr = tool.communicate(timeout=60)
    assert tool.returncode == 130, stderr
    assert stdout.startswith("Nothing was measured yet.")
    assert "0 finished trials kept" in stderr
    assert store.read_experiment(only_folder()).rounds == 4


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGHUP, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_an_ignored_signal_stays_ignored(
    command: list[str],
    environment: dict[str, str],
    tmp_path: Path,
    only_folder: Callable[[], Path],
    number: signal.Signals,
) -> None:
    """As under nohup and in a script's background: an experiment is not ended by what it was protected from."""
    script = "echo >> runs; if [ $(wc -l < runs) -eq 3 ]; then touch hanging; sleep 2; fi"
    arguments = ["compare", "-a", "glibc", "-n", "2", "--no-report", "--", "sh", "-c", script]
    tool = subprocess.Popen(
        ["sh", "-c", f'trap "" {number.name[3:]}; exec "$@"', "sh", *command, *arguments],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    _wait_for((tmp_path / "hanging").exists, "the third run")
    tool.send_signal(number)
    _, stderr = tool.communicate(timeout=60)
    assert tool.returncode == 0, stderr
    assert len(store.read_trials(only_folder()).records) == 4
