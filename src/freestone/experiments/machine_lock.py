"""One ordered measurement at a time on a machine: two places of an order may be one machine by two names.

The lock is a file in the cache of the account: other accounts and containers with another home do not share it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator

from freestone.experiments.interruption import Interruption
from freestone.records import cached


@contextlib.contextmanager
def held(stop: Interruption, tell: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock; without it if no lock can be had, or if this process is itself measured.

    Args:
        stop: its first signal ends the wait with :class:`freestone.experiments.interruption.TrialBrokenOff`.
        tell: receives a line if another process holds it.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # such as a file system without locks
            file = cached.folder() / f"measures-{os.uname().nodename}"  # many machines may share a home
            file.parent.mkdir(parents=True, exist_ok=True)
            lock = stack.enter_context(file.open("w"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if "FREESTONE_WITNESS" not in os.environ:
                    tell("another measurement is running on this machine: waits for it")
                    with stop.breakable():
                        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
