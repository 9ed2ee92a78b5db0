"""Ctrl-C as people mean it: once stops cleanly, twice stops at once.

The first signal breaks off the trial that is running, whose processes are ended and whose time is thrown away; anything
else that is going on, such as writing a finished record, is completed. The second kills everything below this process
and leaves.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Self

from freestone.trials import tree

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class TrialBrokenOff(KeyboardInterrupt):
    """Raised inside :meth:`Interruption.breakable` by the first signal."""


class Interruption:
    """Signal handlers of an experiment, installed while the object is entered.

    A signal that was ignored when the process started (``nohup``, a background job) stays ignored.
    """

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        """The first signal that came, None while there was none."""
        self._breakable = False
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> Self:
        for number in SIGNALS:
            before = signal.getsignal(number)
            if before != signal.SIG_IGN:
                self._before[number] = before
                signal.signal(number, self._handle)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)  # type: ignore[arg-type]  # what getsignal gave
        self._before.clear()

    def __call__(self) -> bool:
        """Whether to stop: the ``stop`` argument of :func:`freestone.experiments.run`."""
        return self.signal is not None

    @contextlib.contextmanager
    def breakable(self) -> Iterator[None]:
        """A stretch of work that the first signal breaks off with :class:`TrialBrokenOff`."""
        if self.signal is not None:
            raise TrialBrokenOff
        self._breakable = True
        try:
            yield
        finally:
            self._breakable = False

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is not None:
            kill_descendants(os.getpid())
            os.write(2, b"\nfreestone: stopped at once; finished trials are kept\n")
            os._exit(128 + number)
        self.signal = signal.Signals(number)
        if self._breakable:
            self._breakable = False
            raise TrialBrokenOff


def kill_descendants(ancestor: int) -> None:
    """SIGKILL to every process below ``ancestor``, again until none is left or none goes away.

    A process that is made while the tree is read is found by the next look.
    """
    for _ in range(5):
        below = tree.below(ancestor)
        if not below:
            return
        for process in below:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        with contextlib.suppress(OSError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
