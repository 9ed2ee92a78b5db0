"""Reads files that others may have put there: what is no file, or has no end, is said and not waited for."""

from __future__ import annotations

import os
import stat
from pathlib import Path


class NoRegularFile(OSError):
    """Something else is there under the name of a file."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(0, what, str(path))


def content(path: Path, *, most_bytes: int | None = None) -> bytes:
    """All that a file holds. A pipe without a writer holds up nobody, and a device is not read.

    Args:
        path: of the file, or of a link to one.
        most_bytes: that are read; None for all.

    Raises:
        OSError: it cannot be read, is no regular file, or holds more.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise NoRegularFile(path, "it is no regular file")
        if most_bytes is not None and found.st_size > most_bytes:
            raise NoRegularFile(path, f"{found.st_size} bytes are more than anybody writes there")
        return file.read()
