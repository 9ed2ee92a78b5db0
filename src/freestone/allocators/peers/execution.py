"""Runs the commands of a build, several at a time, with everything they say in one log."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_POLL_S = 0.01
_TELLING = re.compile(r"no space left on device|disk quota exceeded|\berror\b|undefined reference", re.IGNORECASE)
_FULL = re.compile(r"no space left on device|disk quota exceeded", re.IGNORECASE)
_FLAGS_OF_THE_USER = {"CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "MAKEFLAGS", "MFLAGS", "LD_PRELOAD"}


@dataclass(frozen=True)
class Command:
    words: tuple[str, ...]
    folder: Path

    def __str__(self) -> str:
        return shlex.join(self.words)


class CommandFailed(Exception):
    """A command did not end well; the message is the most telling line it wrote."""

    def __init__(self, message: str, *, disk_full: bool = False) -> None:
        super().__init__(message)
        self.disk_full = disk_full


def environment(temporary: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a build: the user's, without what would change the result.

    Args:
        temporary: where compilers put what they need for a moment.
        more: on top.
    """
    kept = {name: value for name, value in os.environ.items() if name not in _FLAGS_OF_THE_USER}
    return {**kept, "LC_ALL": "C", "TMPDIR": str(temporary), **(more or {})}


def run(commands: Iterable[Command], *, jobs: int, log: Path, environment: Mapping[str, str]) -> None:
    """Run commands until all have ended, at most ``jobs`` at a time, in the order given.

    Whatever ends this early, an interrupt too, ends the commands that are still going on, with their children.

    Raises:
        CommandFailed: one could not be started or did not end with 0; no other is begun.
        OSError: the log cannot be written.
    """
    running: list[subprocess.Popen[bytes]] = []
    with open(log, "ab", buffering=0) as stream:
        begun = stream.tell()
        try:
            for command in commands:
                while len(running) >= jobs:
                    _reap(running, log, begun)
                with _signals_wait():
                    running.append(_start(command, stream.fileno(), environment))
            while running:
                _reap(running, log, begun)
        finally:
            _end(running)


@contextmanager
def _signals_wait() -> Iterator[None]:
    """An interrupt comes after the block: in the middle of a start it would leave a process that nobody knows."""
    caught: list[int] = []
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if callable(handler):
                before[number] = handler
                signal.signal(number, lambda heard, _: caught.append(heard))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for heard in caught:
        os.kill(os.getpid(), heard)


def _start(command: Command, log: int, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    os.write(log, f"$ {command}\n".encode(errors="replace"))
    try:
        return subprocess.Popen(
            command.words,
            cwd=command.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    except OSError as error:
        raise CommandFailed(f"{command.words[0]}: {(error.strerror or str(error)).lower()}") from None


def _reap(running: list[subprocess.Popen[bytes]], log: Path, begun: int) -> None:
    ended = [process for process in running if process.poll() is not None]
    if not ended:
        time.sleep(_POLL_S)
    for process in ended:
        running.remove(process)
        if process.returncode < 0:
            raise CommandFailed(f"killed by {signal.Signals(-process.returncode).name}")
        if process.returncode > 0:
            raise _failure(log, begun, process.returncode)


def _failure(log: Path, begun: int, status: int) -> CommandFailed:
    with open(log, "rb") as stream:
        stream.seek(begun)
        text = stream.read().decode("utf-8", "replace")
    said = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("$ ")]
    telling = next((line for line in said if _TELLING.search(line)), said[-1] if said else f"exit status {status}")
    return CommandFailed(telling[:200], disk_full=_FULL.search(text) is not None)


def _end(running: list[subprocess.Popen[bytes]]) -> None:
    for process in running:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    for process in running:
        process.wait()
