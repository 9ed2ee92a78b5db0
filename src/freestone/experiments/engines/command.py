"""The command that carries out an order, and what is heard of it while it runs."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from freestone.experiments.engines import Carried, Unreachable, limits
from freestone.records import cached
from freestone.records.schema import Order, Place

PATIENCE_S: Final = 30.0
"""How long one that is told to stop has for it."""

LOOK_S: Final = 0.2

DONE: Final = (0, 4)
"""Exit statuses of a lab that has done all of an order that it can."""


def lab(*words: str) -> list[str]:
    """A command that runs this lab in a process of its own.

    Modules of the folder that it is started in are not taken for the lab's. Where this process takes nothing from the
    environment of Python, nor does that one.
    """
    return [sys.executable, "-I" if sys.flags.isolated else "-P", "-m", "freestone", *words]


def words(order: Order, folder: str) -> list[str]:
    """The order as arguments of ``freestone``.

    Args:
        folder: the results folder at the place.
    """
    verb, *more = order.words
    alone = ["--no-report"] if verb == "compare" else []  # the other verbs write no report of their own
    return [verb, "--into", folder, *alone, *more]


def kept_as(order: Order, place: Place) -> str:
    """The folder's name where a place keeps what it measures until it is fetched."""
    return f"{order.id}-{place.name}"


def held(line: str) -> str:
    """A line for a shell that runs a command until it ends or standard input does; the status is the command's.

    Whoever holds the other end of standard input, and is gone, cannot tell it to stop. Jobs of a shell have no input of
    their own: what is held open is heard by a process beside the command.
    """
    return (
        f"exec 3<&0; {line} </dev/null 3<&- & lab=$!; "
        "{ cat <&3 >/dev/null; kill -TERM $lab; } 2>/dev/null & ear=$!; "
        "wait $lab; status=$?; kill $ear 2>/dev/null; exit $status"
    )


def started_in(directory: str) -> Path:
    """Where the order is carried out: in the folder of the name in which it was given, or at home, or at the root."""
    folder, home = Path(directory), cached.home()
    if directory and folder.is_dir():
        return folder
    return home if home.is_dir() else Path("/")


def run(
    command: Sequence[str],
    tell: Callable[[str], None],
    stop: threading.Event,
    *,
    hold: bool = False,
    folder: Path | None = None,
) -> Carried:
    """Run a command to its end, tell every line of its standard error, and end it when asked to.

    Args:
        folder: that it is started in; None for this process's own.
        hold: it is told to stop by the end of its standard input, and not by a signal.

    Raises:
        Unreachable: it cannot be started.
    """
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.PIPE if hold else subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C is for the one who waits for it
        )
    except OSError as error:
        raise Unreachable(f"{command[0]} cannot be started: {error.strerror or error}") from error
    last: list[str] = []

    def listen() -> None:
        stream = process.stderr
        assert stream is not None
        for line in iter(lambda: stream.readline(limits.MOST_TOLD_BYTES), ""):
            told = line.rstrip()
            if told:
                last[:] = [told]
                tell(told)

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    while process.poll() is None:
        if stop.wait(LOOK_S):
            _end(process, hold=hold)
            break
    status = process.wait()
    listener.join(PATIENCE_S)
    return Carried(status, last[0] if last else None)


def _end(process: subprocess.Popen[str], *, hold: bool) -> None:
    if hold and process.stdin is not None:
        process.stdin.close()
    else:
        process.terminate()
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
