"""Runs a line for a shell below ``freestone-escort``, which ends all that comes of it when this process is gone."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Final

from freestone import native
from freestone.trials.offspring import Offspring

PROGRAM: Final = "freestone-escort"


@dataclass(frozen=True)
class Errand:
    """A command of the lab's own: what a stage does, what waits for a server, drives it or filters an output.

    ``stdin`` None is an empty input; ``environment`` and ``directory`` None are this process's.
    """

    line: str
    stdout: IO[bytes]
    stderr: IO[bytes]
    stdin: IO[bytes] | None = None
    environment: Mapping[str, str] | None = None
    directory: str | None = None
    session: bool = True
    """In a session of its own. Without one it is in a group of its own, and keeps the terminal in sight."""
    leaves: bool = False
    """Whether what it leaves behind at its end goes on, as a daemon does that a setup starts."""


@contextlib.contextmanager
def begun(errand: Errand) -> Iterator[Offspring]:
    """Start a command; its end is that of the process that is yielded: exit status, signal or stop.

    However this process ends, with SIGKILL too, all that came of the command ends then, but for what it has left behind
    at an end of its own and may leave. So it does where an exception leaves the stretch.

    Raises:
        OSError: it cannot be started.
        NativePartMissing: the escort is not installed.
    """
    with contextlib.ExitStack() as lifeline:
        reading, writing = os.pipe()
        lifeline.callback(os.close, writing)
        with contextlib.ExitStack() as here:
            here.callback(os.close, reading)
            words = [str(native.path(PROGRAM)), *_options(errand), "--lifeline", str(reading)]
            words += ["--", "/bin/sh", "-c", errand.line]

            def start() -> subprocess.Popen[bytes]:
                try:
                    return _started(words, errand, reading)
                finally:
                    here.close()

            with Offspring.begun(start, cut=lifeline.close) as offspring:
                yield offspring


def _options(errand: Errand) -> list[str]:
    return ["--session"] * errand.session + ["--leave"] * errand.leaves


def _started(words: list[str], errand: Errand, lifeline: int) -> subprocess.Popen[bytes]:
    # A group of its own: Ctrl-C in the terminal reaches this process alone, which then decides.
    return subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL if errand.stdin is None else errand.stdin,
        stdout=errand.stdout,
        stderr=errand.stderr,
        env=errand.environment,
        cwd=errand.directory,
        process_group=0,
        pass_fds=[lifeline],
    )
