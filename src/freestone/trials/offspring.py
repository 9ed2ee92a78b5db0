"""Sees to it that nothing the lab starts outlives its purpose, however it was started and however it is ended."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Self

from freestone.trials import tree
from freestone.trials.process import look

Cut = Callable[[], None]

_HELD_BACK: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_PR_SET_CHILD_SUBREAPER: Final = 36
_LOOKS: Final = 5
_PATIENCE_S: Final = 5.0
_PAUSE_S: Final = 0.001


class Offspring:
    """One process and all that comes of it, from its start to its end.

    While a process is known that has a mark, this one is who orphans below it fall to: what a launcher leaves that was
    killed is found among this process's own children, by its mark. At other times they fall to the system, as ever: a
    daemon that a setup starts is nobody's to end, and its end is nobody's to wait for but the system's.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], before: frozenset[int], mark: bytes | None, cut: Cut | None
    ) -> None:
        self.process = process
        self._before = before
        self._mark = mark
        self._cut = cut

    @classmethod
    @contextlib.contextmanager
    def begun(
        cls, start: Callable[[], subprocess.Popen[bytes]], mark: str | None = None, cut: Cut | None = None
    ) -> Iterator[Self]:
        """Start a process; it is ended, with all that came of it, by whatever leaves the stretch as an exception.

        Args:
            start: starts it.
            mark: stands in the environment of all that comes of it, and of nothing else.
            cut: has the process itself end all that came of it, and then end; it may be called again.

        A signal that arrives while it is being started is heard when it is: there is never a process that nobody knows.
        """
        before = tree.children(os.getpid()) if mark is not None else frozenset()
        found: Self | None = None
        with _adopting() if mark is not None else contextlib.nullcontext():
            try:
                with _signals_held_back():
                    found = cls(start(), before, None if mark is None else os.fsencode(mark), cut)
                yield found
            except BaseException:
                if found is not None:
                    found.end()
                raise

    def end(self) -> None:
        """SIGKILL to the process, its group and everything below, again until nothing is left."""
        if self._cut is not None and self.process.returncode is None:
            self._cut()
            self.process.send_signal(signal.SIGCONT)  # it stops with its command
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_PATIENCE_S)
        # Once it has been waited for, its number may be another's; what came of it has fallen to this process then.
        if self.process.returncode is None:
            known = set(tree.below(self.process.pid))  # once it has ended nothing is below it any more
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.getpgid(self.process.pid) == self.process.pid:
                    os.killpg(self.process.pid, signal.SIGKILL)
            for _ in range(_LOOKS):
                below = tree.below(self.process.pid)
                known.update(below)
                if not _kill(below):
                    break
            _kill(list(known))
            self.process.kill()
            # Who has more rights than this process (sudo) cannot be ended by it, and is not waited for long.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_PATIENCE_S)
            _await_end(known)
        self.end_orphans()

    def end_orphans(self) -> None:
        """SIGKILL to what came of the process and has fallen to this one, with everything below."""
        until = time.monotonic() + _PATIENCE_S
        while orphans := self._orphans():
            _kill([*orphans, *(each for orphan in orphans for each in tree.below(orphan))])
            for orphan in orphans:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(orphan, os.WNOHANG)
            if time.monotonic() > until:
                return
            time.sleep(_PAUSE_S)

    def _orphans(self) -> list[int]:
        if self._mark is None:
            return []
        new = tree.children(os.getpid()) - self._before - {self.process.pid}
        return [each for each in new if _is_marked(each, self._mark)]


def reap_others(own: int) -> None:
    """Take note of the end of children that are nobody's here: what had fallen to this process while it adopted."""
    while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
        if ended.si_pid == own:
            return
        with contextlib.suppress(ChildProcessError):
            os.waitpid(ended.si_pid, os.WNOHANG)


def _is_marked(process: int, mark: bytes) -> bool:
    """Whether it, or anything below it, has the mark. One that is ending has none any more, and is taken for one."""
    for each in [process, *tree.below(process)]:
        try:
            environment = Path(f"/proc/{each}/environ").read_bytes()
        except OSError:
            environment = b""
        if mark in environment or environment == b"":
            return True
    return False


def _kill(processes: list[int]) -> bool:
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)
    return bool(processes)


def _runs(number: int) -> bool:
    """Whether it has not ended yet; whose end nobody has taken note of has."""
    found = look(number)
    return found is not None and found.state not in "ZX"


def _await_end(processes: set[int]) -> None:
    until = time.monotonic() + _PATIENCE_S
    while any(map(_runs, processes)) and time.monotonic() < until:
        time.sleep(_PAUSE_S)


@contextlib.contextmanager
def _adopting() -> Iterator[None]:
    # Refused by some sandboxes: then orphans fall to the system, and are not found.
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@contextlib.contextmanager
def _signals_held_back() -> Iterator[None]:
    """Signals that would raise something are heard at the end of the stretch.

    Python's handlers are exchanged rather than signals blocked: a blocked signal would stay so in what is started.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are handled in the main thread alone
        return
    heard: list[int] = []
    handlers: dict[signal.Signals, Callable[..., object]] = {}
    try:
        for number in _HELD_BACK:
            handler = signal.getsignal(number)
            if callable(handler):
                handlers[number] = handler
                signal.signal(number, lambda each, _: heard.append(each))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for each in heard:
            signal.raise_signal(each)
