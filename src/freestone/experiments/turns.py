"""Orders that meet on one machine: one measures at a time, and the others wait for it.

Two places of an order may be one machine: a host by two names, or this one by ssh. What holds the turn is a lock in the
cache of the account, which ends with its process; other accounts, and containers with a home of their own, do not see
it. A program that is measured has the turn of whoever measures it, who waits for its end.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from time import sleep
from typing import Final

from freestone.records import cached

LOOK_S: Final = 0.2

_MOST_BYTES: Final = 256

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
"""Another on each machine: a home folder may be shared by many."""


@contextlib.contextmanager
def taken(stop: Callable[[], bool], tell: Callable[[str], None]) -> Iterator[None]:
    """This machine's turn to measure; without it where somebody asks to stop, or no lock can be had.

    Args:
        stop: whether to wait no longer.
        tell: told once that another measures.
    """
    lock = _locked(stop, tell)
    try:
        yield
    finally:
        if lock is not None:
            descriptor, file = lock
            file.unlink(missing_ok=True)  # while it is held: whoever waits for it looks for it again
            os.close(descriptor)


def _locked(stop: Callable[[], bool], tell: Callable[[str], None]) -> tuple[int, Path] | None:
    told = False
    while not stop():
        try:
            file = _file()
            file.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is(file, descriptor):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, _called(os.getpid()).encode(), 0)
                return descriptor, file
            os.close(descriptor)
        except BlockingIOError:
            measured = os.pread(descriptor, _MOST_BYTES, 0).decode(errors="replace") in _above()
            os.close(descriptor)
            if measured:
                return None
            if not told:
                tell("another place of an order is this very machine: waits until it has measured")
            told = True
            sleep(LOOK_S)
        except OSError:  # a file system without locks
            os.close(descriptor)
            return None
    return None


def _called(process: int) -> str:
    """A process, as it is called in the file that it has locked: its number is one of its own name space."""
    return f"{os.readlink('/proc/self/ns/pid')} {process}\n"


def _above() -> list[str]:
    """The processes that have started this one, and those that have started them."""
    found, process = [], os.getpid()
    with contextlib.suppress(OSError, ValueError):
        while process > 0:
            state = Path(f"/proc/{process}/stat").read_text(errors="replace")
            process = int(state.rpartition(")")[2].split()[1])
            found.append(_called(process))
    return found


def _file() -> Path:
    return cached.folder() / f"measures-{_BOOT.read_text().strip()}"


def _is(file: Path, descriptor: int) -> bool:
    """Whether a file is still the one that was opened: the one before may have taken it away."""
    try:
        return os.path.samestat(file.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
