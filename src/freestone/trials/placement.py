"""Gives a file new pages in memory, so that where its code happens to lie is noise and no bias.

Two copies of one library differed by 1.45 in a loop of malloc and free, run after run, until the kernel gave the slower
one other pages (docs/design/measurement.md). A library stays where it is for days, so no number of
rounds shows that: every trial therefore gets pages of its own.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import stat
import time
from collections.abc import Iterable, Iterator
from typing import Final

_WRITTEN_S: Final = 300.0
"""After so many seconds the kernel has written what was changed."""

_MOST_AHEAD: Final = 4 << 20
"""Bytes that are taken for a moment: the kernel hands pages out again in the order in which it got them back."""

_LONGEST: Final = 64 << 20
"""Bytes; what is longer is no library, and takes a while to read."""

_CHUNK: Final = 1 << 20


def renew(files: Iterable[str]) -> None:
    """Have the kernel read the files anew, into other pages than before.

    Pages that somebody has mapped stay where they are, as those of the C library do. What cannot be opened is left
    alone: whoever needs it will say so.
    """
    opened: list[int] = []
    try:
        for file in dict.fromkeys(map(os.path.realpath, files)):
            with contextlib.suppress(OSError):
                if stat.S_ISREG(os.stat(file).st_mode):  # to open a pipe or a device is to use it
                    opened.append(os.open(file, os.O_RDONLY | os.O_CLOEXEC))
        mine = [each for each in opened if 0 < os.fstat(each).st_size <= _LONGEST]
        for each in mine:
            with contextlib.suppress(OSError):
                if time.time() - os.fstat(each).st_mtime < _WRITTEN_S:
                    os.fdatasync(each)  # a page that is not written yet would stay
                os.posix_fadvise(each, 0, 0, os.POSIX_FADV_DONTNEED)
        random.shuffle(mine)
        with _pages_ahead():
            for each in mine:
                with contextlib.suppress(OSError):
                    while os.read(each, _CHUNK):
                        pass
    finally:
        for each in opened:
            os.close(each)


@contextlib.contextmanager
def _pages_ahead() -> Iterator[None]:
    """Some of the pages that are next in turn, for a while."""
    size = random.randrange(mmap.PAGESIZE, _MOST_AHEAD, mmap.PAGESIZE)
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as ahead:
        with contextlib.suppress(OSError):
            ahead.madvise(mmap.MADV_NOHUGEPAGE)  # folios come from elsewhere than pages, whose turn is meant
        for offset in range(0, size, mmap.PAGESIZE):
            ahead[offset] = 1
        yield
