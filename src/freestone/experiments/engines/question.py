"""A command that is asked something: its answer, for as long as it says anything and nobody asks to stop."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Final

from freestone.experiments.engines import Unreachable, limits

SILENT_S: Final = 120.0
"""How long a command may say nothing: a small board with a busy card needs a minute to begin."""

STOPPED_S: Final = 15.0
"""How long it may say nothing once somebody has asked to stop, where its answer is wanted all the same."""

LEFT_OPEN_S: Final = 10.0
"""How long a stream is heard after the command has ended: a process that it left behind may hold it open for ever."""

LOOK_S: Final = 0.2

_PIECE: Final = 1 << 16


@dataclass(frozen=True)
class Answer:
    """What a command said, and its exit status."""

    status: int
    said: bytes
    told: str
    """Of standard error, the last line; empty where there is none."""


def asked(words: Sequence[str], stop: threading.Event, *, given: bytes = b"", wanted: bool = False) -> Answer:
    """Start a command and wait for its answer. It is in a session of its own: Ctrl-C is for the one who waits for it.

    Args:
        words: the command.
        stop: set by whoever wants it to end.
        given: to its standard input.
        wanted: whether the answer is waited for also when somebody asks to stop, as long as there comes any.

    Raises:
        Unreachable: it cannot be started, says nothing for too long or more than is taken of a place, or somebody asked
            to stop.
    """
    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE if given else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise Unreachable(f"{words[0]}: {error.strerror or error}") from error
    talk = _Talk(process, given)
    try:
        while talk.goes_on():
            talk.require_end()
            if not wanted and stop.is_set():
                raise Unreachable("interrupted")
            silent_s = time.monotonic() - talk.heard_at
            if process.poll() is not None:
                if silent_s > LEFT_OPEN_S:
                    break
            elif silent_s > (STOPPED_S if stop.is_set() else SILENT_S):
                raise Unreachable(f"{words[0]} has said nothing for {silent_s:.0f} s")
            talk.wait(LOOK_S)
        talk.require_end()
        return Answer(process.wait(), talk.said, talk.told)
    finally:
        if process.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        talk.end()


class _Talk:
    """The streams of a process, each with a thread of its own, so that none waits for another."""

    def __init__(self, process: subprocess.Popen[bytes], given: bytes) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self.heard_at = time.monotonic()
        self._process = process
        self._heard = 0  # bytes of standard output
        self._said: list[bytes] = []
        self._told = b""
        listens = ((self._hear_said, process.stdout), (self._hear_told, process.stderr))
        self._threads = [threading.Thread(target=self._listen, args=each, daemon=True) for each in listens]
        if process.stdin is not None:
            self._threads.append(threading.Thread(target=self._give, args=(process.stdin, given), daemon=True))
        for thread in self._threads:
            thread.start()

    @property
    def said(self) -> bytes:
        """All of standard output so far."""
        return b"".join(self._said)

    @property
    def told(self) -> str:
        """The last line of standard error so far; empty where there is none."""
        lines = self._told.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def goes_on(self) -> bool:
        """Whether it runs, or may have more to say."""
        return self._process.poll() is None or any(thread.is_alive() for thread in self._threads)

    def require_end(self) -> None:
        """Raise Unreachable where it has said more than is taken of a place."""
        if self._heard > limits.MOST_BYTES:
            raise Unreachable(f"it sends more than {limits.MOST_BYTES >> 20} MiB, which is not brought here")

    def wait(self, most_s: float) -> None:
        """Until the first stream that is open ends, or so long."""
        running = [thread for thread in self._threads if thread.is_alive()]
        if running:
            running[0].join(most_s)
        else:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(most_s)

    def end(self) -> None:
        """Let go of the streams; of one that somebody else holds open, its thread does when that one is gone."""
        for thread in self._threads:
            thread.join(LOOK_S)

    def _listen(self, hear: Callable[[bytes], None], stream: IO[bytes]) -> None:
        with stream:
            while self._heard <= limits.MOST_BYTES and (piece := os.read(stream.fileno(), _PIECE)):
                self.heard_at = time.monotonic()
                hear(piece)

    def _hear_said(self, piece: bytes) -> None:
        self._heard += len(piece)
        self._said.append(piece)

    def _hear_told(self, piece: bytes) -> None:
        self._told = (self._told + piece)[-limits.MOST_TOLD_BYTES :]

    def _give(self, stream: IO[bytes], given: bytes) -> None:
        with contextlib.suppress(OSError), stream:  # whoever does not read it says why
            for at in range(0, len(given), _PIECE):
                stream.write(given[at : at + _PIECE])
                stream.flush()
                self.heard_at = time.monotonic()
