"""The command that carries out an order, and how a command is run until it ends or the user stops it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from freestone.experiments.engines import Carried, Tell, Unreachable, archive
from freestone.records import cached
from freestone.records.schema import Order, Place

DONE: Final = (0, 4)
"""Exit statuses of a lab that has measured all of an order that it can."""

INTERRUPTED: Final = Carried(130, "interrupted")

STOP_S: Final = 30.0
"""How long a command may take to end after a stop."""

LEFT_OPEN_S: Final = 10.0
"""How long its streams are read after its end: a process that it left behind may hold them open."""

LOOK_S: Final = 0.2

_LINE_BYTES: Final = 1 << 16


def lab(*words: str) -> list[str]:
    """Return a command that runs this lab in another process.

    Python does not import modules from the current folder. If this process ignores the environment of Python, so does
    that one.
    """
    return [sys.executable, "-I" if sys.flags.isolated else "-P", "-m", "freestone", *words]


def words(order: Order, folder: str) -> list[str]:
    """Return the order as arguments of ``freestone`` for a results folder on that machine."""
    verb, *more = order.words
    return [verb, "--into", folder, *(["--no-report"] if verb == "compare" else []), *more]


def kept_as(order: Order, place: Place) -> str:
    """Return the name of the folder in which a machine keeps its results until they are copied."""
    return f"{order.id}-{place.name}"


def held(line: str) -> str:
    """Return a line for a shell that runs a command and sends it SIGTERM at the end of standard input.

    So a command on another machine ends with the connection to it. The status is the command's.
    """
    return (
        f"exec 3<&0; {line} </dev/null 3<&- & lab=$!; "
        "{ cat <&3 >/dev/null; kill -TERM $lab; } 2>/dev/null & ear=$!; "
        "wait $lab; status=$?; kill $ear 2>/dev/null; exit $status"
    )


def started_in(directory: str) -> Path:
    """Return the folder to start in: the order's, or the home folder, or the root."""
    return next((each for each in (Path(directory or "/nonexistent"), cached.home()) if each.is_dir()), Path("/"))


def run(
    command: Sequence[str],
    stop: threading.Event,
    *,
    tell: Tell = lambda line: None,
    at_stop: Literal["wait", "terminate", "close"] = "wait",
    given: bytes | None = None,
    folder: Path | None = None,
) -> Carried:
    """Run a command to its end, in a session of its own so that Ctrl-C does not reach it.

    Args:
        command: the program and its arguments.
        stop: set if the user stops; the command is killed after :data:`STOP_S`.
        tell: receives each line of standard error.
        at_stop: only wait, or terminate it, or close its standard input, which is held open until then.
        given: its standard input.
        folder: to start it in; None for the current one.

    Raises:
        Unreachable: it cannot be started, or its output exceeds the limit of an archive.
    """
    piped = given is not None or at_stop == "close"
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise Unreachable(f"{command[0]} cannot be started: {error.strerror or error}") from error
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    assert stdout is not None
    assert stderr is not None
    output, lines = bytearray(), [""]

    def collect() -> None:
        with stdout:
            while len(output) <= archive.MOST_BYTES and (piece := os.read(stdout.fileno(), 1 << 16)):
                output.extend(piece)

    def listen() -> None:
        with stderr:
            for line in iter(lambda: stderr.readline(_LINE_BYTES), b""):
                text = line.decode(errors="replace").rstrip()
                if text:
                    lines.append(text)
                    del lines[:-1]
                    tell(text)

    def give() -> None:
        if given is not None and stdin is not None:
            with contextlib.suppress(OSError), stdin:  # a command that does not read it says why
                stdin.write(given)

    threads = [threading.Thread(target=each, daemon=True) for each in (collect, listen, give)]
    for thread in threads:
        thread.start()
    while process.poll() is None:
        if stop.wait(LOOK_S):
            if at_stop == "terminate":
                process.terminate()
            elif at_stop == "close" and stdin is not None:
                stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_S)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    end = time.monotonic() + LEFT_OPEN_S
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    if len(output) > archive.MOST_BYTES:
        raise Unreachable(f"it sends more than {archive.MOST_BYTES >> 20} MiB, which are not copied")
    return Carried(process.returncode, lines[0] or None, bytes(output))
