"""What is shown depends on who looks: a terminal, a narrow one, one without colour, or none at all."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from freestone.analysis.rounds import Slot
from freestone.commands import terminal
from freestone.commands.progress import PLAIN_EVERY_S, Progress, duration
from freestone.experiments.events import BudgetSpent, RehearsalStarted, TrialStarted
from freestone.records import store

PROGRAM = [sys.executable, "-I", "-S", "-c", "print(1)"]
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

InTerminal = Callable[..., tuple[int, str]]


@pytest.fixture
def in_terminal(tmp_path: Path, command: list[str], environment: dict[str, str]) -> InTerminal:
    """Runs the tool on a terminal of its own; gives its exit status and all that it wrote."""

    def run(*arguments: str, columns: int = 100, env: dict[str, str] | None = None) -> tuple[int, str]:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        surroundings = {**environment, **(env or {})}
        del surroundings["COLUMNS"]
        tool = subprocess.Popen(
            [*command, *arguments], cwd=tmp_path, env=surroundings, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        seen = b""
        while select.select([ours], [], [], 120)[0]:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other side is closed
                break
            if not part:
                break
            seen += part
        os.close(ours)
        return tool.wait(60), seen.decode()

    return run


def _screen_lines(text: str) -> list[str]:
    """Lines as they stand on the screen at any time: what follows a carriage return is written over."""
    return [CONTROL.sub("", part) for line in text.split("\n") for part in line.rstrip("\r").split("\r")]


COMPARE = ["compare", "-a", "freestone", "-n", "4", "--no-report", "--", *PROGRAM]


def test_a_terminal_has_a_live_line_that_goes_away(in_terminal: InTerminal) -> None:
    status, seen = in_terminal(*COMPARE)
    assert status == 0, seen
    assert re.search(r"\r\x1b\[Kround 1/4 · \w+", seen)
    assert re.search(r"\r\x1b\[Kround \d/4 · \d+ s left · \w+", seen), "with an estimate"
    table = seen[seen.rindex("\r\x1b[K") :]
    assert "round" not in table.partition("Best")[0].partition("No diff")[0]
    assert COLOUR.search(table)


@pytest.mark.parametrize("columns", [40, 60])
def test_a_narrow_terminal_is_never_overrun(in_terminal: InTerminal, columns: int) -> None:
    status, seen = in_terminal(
        *COMPARE[: -len(PROGRAM) - 1], "--name", "x" * 30, "--results", "r", "--", *PROGRAM, columns=columns
    )
    assert status == 0, seen
    to_copy = ("Records:", "Report:", "  freestone  ", "  shell  ", "  systemd  ", "  Dockerfile  ", " " * 14)
    printed = [line for line in _screen_lines(seen) if not line.startswith(to_copy)]
    assert max(len(line) for line in printed) <= columns


@pytest.mark.parametrize("verb", ["compare", "run", "allocators", "report"])
def test_help_fits_forty_columns(in_terminal: InTerminal, verb: str) -> None:
    status, seen = in_terminal(verb, "--help", columns=40)
    assert status == 0
    assert max(len(line) for line in _screen_lines(seen)) <= 40


def test_allocators_fit_forty_columns(in_terminal: InTerminal) -> None:
    status, seen = in_terminal("allocators", columns=40)
    assert status in (0, 4)
    assert max(len(line) for line in _screen_lines(seen)) <= 40


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_where_it_is_not_wanted(in_terminal: InTerminal, env: dict[str, str]) -> None:
    status, seen = in_terminal(*COMPARE, env=env)
    assert status == 0, seen
    assert not COLOUR.search(seen)
    if env.get("TERM") == "dumb":
        assert "\x1b" not in seen


def test_no_terminal_means_plain_lines(freestone: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = freestone(*COMPARE)
    assert done.returncode == 0
    for text in (done.stdout, done.stderr):
        assert "\x1b" not in text
        assert "\r" not in text
    assert re.match(r"freestone: rehearsal 1/\d, \w+\n", done.stderr)
    assert len(done.stderr.splitlines()) < 12, "now and then, not for each trial"


def test_a_terminal_with_ascii_alone_loses_nothing(
    freestone: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = freestone(*COMPARE, env={"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONCOERCECLOCALE": "0"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert "glibc" in done.stdout


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def _started(done: int, remaining_s: float | None = None) -> TrialStarted:
    return TrialStarted(Slot("work", "glibc", done, 0), 5, done, 15, remaining_s)


def test_plain_lines_come_now_and_then() -> None:
    stream, clock = io.StringIO(), _Clock()
    progress = Progress(stream, clock)
    progress(RehearsalStarted("work", "glibc", 0, 3))
    for _ in range(100):
        clock.now += PLAIN_EVERY_S / 40
        progress(_started(1, 61.0))
    assert stream.getvalue().splitlines() == [
        "freestone: rehearsal 1/3, glibc",
        "freestone: round 2/5, 1 min 01 s left, glibc",
        "freestone: round 2/5, 1 min 01 s left, glibc",
    ]


def test_a_sentence_in_a_log_is_one_line() -> None:
    """It was broken as if the log were a terminal just too narrow for it."""
    stream = io.StringIO()
    Progress(stream).note("at most 46 % of this program's memory comes from malloc")
    assert stream.getvalue() == "freestone: at most 46 % of this program's memory comes from malloc\n"


def test_a_terminal_that_goes_away_does_not_end_the_measurement() -> None:
    stream = io.StringIO()
    progress = Progress(stream)
    stream.close()
    progress(BudgetSpent(3))
    progress(_started(1))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (-1, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (3599, "59 min 59 s"), (7384, "2 h 03 min")],
)
def test_durations_read_like_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_width_is_never_less_than_twenty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "3")
    assert terminal.width() == 20


@pytest.mark.parametrize(("servers", "said"), [((), 1), (("web",), 0)])
def test_a_rehearsal_that_does_not_end_may_be_of_a_server(
    monkeypatch: pytest.MonkeyPatch, servers: tuple[str, ...], said: int
) -> None:
    monkeypatch.setattr("freestone.commands.progress.LONG_REHEARSAL_S", 0.01)
    stream = io.StringIO()
    progress = Progress(stream, servers=servers)
    for number in range(2):
        progress(RehearsalStarted("web", "glibc", number, 2))
        if progress.waiting is not None:
            progress.waiting.join()
    progress.clear()
    assert progress.waiting is None
    assert stream.getvalue().count("still running: a server? it needs --ready and --load") == said


def test_a_rehearsal_that_ends_says_nothing_of_servers() -> None:
    stream = io.StringIO()
    progress = Progress(stream)
    progress(RehearsalStarted("web", "glibc", 0, 1))
    waiting = progress.waiting
    assert waiting is not None
    progress(_started(0))
    waiting.join()
    assert "server" not in stream.getvalue()


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_stop_nothing_and_are_nobody_elses(closed: str, command: list[str], tmp_path: Path) -> None:
    """A file that is opened next would get a closed stream's number, and the table."""
    words = [*command, "compare", "-a", "glibc", "-n", "1", "--no-report", "--", "true"]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    (folder,) = (tmp_path / "results").iterdir()
    assert len(store.read_trials(folder).records) == 2
    assert store.read_summary(folder).rounds_complete == 1
