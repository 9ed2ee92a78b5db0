"""Reads what a probe of ours wrote into a folder in which the program could write too."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read(path: Path, most: int = -1) -> bytes:
    """A regular file. What else stands in its place is somebody else's: not waited for, not followed.

    Args:
        most: bytes; all where it is negative.

    Raises:
        OSError: it is none, or cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        return file.read(most)
