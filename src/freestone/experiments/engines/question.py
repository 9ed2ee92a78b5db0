"""A command that is asked something: its answer, for as long as it says anything and nobody asks to stop."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Final

from freestone.experiments.engines import Unreachable

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
        Unreachable: it cannot be started, says nothing for too long, or somebody asked to stop.
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
            if not wanted and stop.is_set():
                raise Unreachable("interrupted")
            silent_s = time.monotonic() - talk.heard_at
            if process.poll() is not None:
                if silent_s > LEFT_OPEN_S:
                    break
            elif silent_s > (STOPPED_S if stop.is_set() else SILENT_S):
                raise Unreachable(f"{words[0]} has said nothing for {silent_s:.0f} s")
            talk.wait(LOOK_S)
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
        self._pieces: tuple[list[bytes], list[bytes]] = ([], [])
        streams = (process.stdout, process.stderr)
        self._threads = [
            threading.Thread(target=self._listen, args=each, daemon=True)
            for each in zip(streams, self._pieces, strict=True)
        ]
        if process.stdin is not None:
            self._threads.append(threading.Thread(target=self._give, args=(process.stdin, given), daemon=True))
        for thread in self._threads:
            thread.start()

    @property
    def said(self) -> bytes:
        """All of standard output so far."""
        return b"".join(self._pieces[0])

    @property
    def told(self) -> str:
        """The last line of standard error so far; empty where there is none."""
        lines = b"".join(self._pieces[1]).decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def goes_on(self) -> bool:
        """Whether it runs, or may have more to say."""
        return self._process.poll() is None or any(thread.is_alive() for thread in self._threads)

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

    def _listen(self, stream: IO[bytes], pieces: list[bytes]) -> None:
        with stream:
            while piece := os.read(stream.fileno(), _PIECE):
                self.heard_at = time.monotonic()
                pieces.append(piece)

    def _give(self, stream: IO[bytes], given: bytes) -> None:
        with contextlib.suppress(OSError), stream:  # whoever does not read it says why
            for at in range(0, len(given), _PIECE):
                stream.write(given[at : at + _PIECE])
                stream.flush()
                self.heard_at = time.monotonic()
