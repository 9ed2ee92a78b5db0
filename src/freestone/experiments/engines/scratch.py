"""The folders in which what was fetched is unpacked, beside where it goes: hidden, and locked by whoever works in them.

They end with whoever made them. One that is killed leaves its folder, and the lock is gone: so it is known as left.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PREFIX: Final = ".fetched-"


@contextlib.contextmanager
def made(beside: Path | None = None) -> Iterator[Path]:
    """An empty folder, which is gone behind it.

    Args:
        beside: where it is made, so that files can be moved from it; None for wherever there is room.

    Raises:
        OSError: it cannot be made.
    """
    folder, descriptor = _locked(beside)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def remove_left(beside: Path) -> None:
    """Remove what was left by those who were killed; where somebody is at work, or there are no locks, it stays."""
    with contextlib.suppress(OSError):
        for folder in beside.glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError):
                descriptor = _opened(folder)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
                finally:
                    os.close(descriptor)


def _locked(beside: Path | None) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(dir=beside, prefix=_PREFIX))
        try:
            descriptor = _opened(folder)
        except FileNotFoundError:  # taken for one that was left, before it had its lock
            continue
        with contextlib.suppress(OSError):  # a file system without locks: nobody removes it
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if folder.is_dir():
            return folder, descriptor
        os.close(descriptor)


def _opened(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
