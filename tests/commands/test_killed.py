"""The lab is ended by SIGKILL, at any moment: nothing that it has started is there three seconds later."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from waiting import soon

pytestmark = pytest.mark.long

ENDED_WITHIN_S = 3.0
BEGUN_WITHIN_S = 60.0

LASTS = "(setsid sleep 300 &) ; setsid sh -c '(sleep 301 &)'; trap '' TERM; touch {now}; sleep 302; true"
"""A line for a shell that lasts, with processes that have left their parents and their session."""

WORK = 'trap "touch stopped; exit 0" TERM; touch up; while :; do sleep 0.05; done'
READY = "test -e up"
SERVICE = ["--ready", READY, "--load", 'sleep 0.1; echo \'{"requests": 100, "seconds": 0.1}\'']

MOMENTS: dict[str, Callable[[str], list[str]]] = {
    "setup": lambda lasts: ["--setup", lasts, "--", "true"],
    "prepare": lambda lasts: ["--prepare", lasts, "--", "true"],
    "a timed run": lambda lasts: ["--", "sh", "-c", lasts],
    "a filter": lambda lasts: ["--compare-output", lasts, "--", "echo", "said"],
    "conclude": lambda lasts: ["--conclude", lasts, "--", "true"],
    "cleanup": lambda lasts: ["--cleanup", lasts, "--", "true"],
    "the first ready": lambda lasts: ["--ready", lasts, *SERVICE[2:], "--", "sh", "-c", WORK],
    "ready": lambda lasts: ["--ready", f"test -e up && {{ {lasts}; }}", *SERVICE[2:], "--", "sh", "-c", WORK],
    "a load": lambda lasts: ["--ready", READY, "--load", lasts, "--", "sh", "-c", WORK],
    "a server that starts": lambda lasts: [*SERVICE, "--", "sh", "-c", lasts],
    "a server that stops": lambda lasts: [*SERVICE, "--", "sh", "-c", WORK.replace("exit 0", lasts)],
}


@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
def test_nothing_outlives_a_lab_that_is_killed(
    moment: Callable[[str], list[str]], lab: Callable[[list[str]], contextlib.AbstractContextManager[Lab]]
) -> None:
    with lab(moment(LASTS.format(now="now"))) as started:
        started.reaches("now")
        assert len(started.marked()) > 2, "the command and what has left it"
        started.process.kill()
        started.process.wait()
        assert soon(lambda: not started.marked(), ENDED_WITHIN_S), started.named()


def test_a_daemon_that_a_setup_has_started_goes_on(
    lab: Callable[[list[str]], contextlib.AbstractContextManager[Lab]],
) -> None:
    """It is there on purpose, and the lab has handed it to the system as its setup ended."""
    daemon = "setsid sleep 300 & echo $! > daemon"
    with lab(["--setup", daemon, "--", "sh", "-c", LASTS.format(now="now")]) as started:
        started.reaches("now")
        started.process.kill()
        started.process.wait()
        kept = int((started.folder / "daemon").read_text())
        assert soon(lambda: started.marked() == [kept], ENDED_WITHIN_S), started.named()


class Lab:
    """The tool at work in a folder, and every process that has its mark."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path, mark: str) -> None:
        self.process = process
        self.folder = folder
        self._mark = mark.encode()

    def reaches(self, file: str) -> None:
        """Wait until the lasting command has begun."""
        there = self.folder / file
        found = soon(lambda: there.exists() or self.process.poll() is not None, BEGUN_WITHIN_S)
        assert found
        assert there.exists(), (self.folder / "said").read_text()

    def marked(self) -> list[int]:
        """The living processes of this lab."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    if self._mark in (entry / "environ").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
        return found

    def named(self) -> list[bytes]:
        """The command lines of what is left."""
        return [Path(f"/proc/{each}/cmdline").read_bytes() for each in self.marked()]


@pytest.fixture
def lab(
    tmp_path: Path, command: list[str], environment: dict[str, str]
) -> Callable[[list[str]], contextlib.AbstractContextManager[Lab]]:
    @contextlib.contextmanager
    def started(words: list[str]) -> Iterator[Lab]:
        mark = f"OF_THE_TEST={tmp_path}"
        name, _, value = mark.partition("=")
        with (tmp_path / "said").open("wb") as said:
            process = subprocess.Popen(
                [*command, "compare", "-a", "glibc", "-n", "1", "--no-report", *words],
                cwd=tmp_path,
                env={**environment, name: value},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        begun = Lab(process, tmp_path, mark)
        try:
            yield begun
        finally:
            process.kill()
            process.wait()
            for each in begun.marked():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)

    return started
