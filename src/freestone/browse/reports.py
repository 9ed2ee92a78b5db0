"""Which report belongs to a result, and its file opened: nothing else below the folder of all results is."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from freestone.records import store


@dataclass(frozen=True)
class Report:
    """The page of a result."""

    parts: tuple[str, ...]
    """Folders on the way to it from the folder of all results, and its name."""
    older: bool
    """Whether trials have come since it was written."""


def report_of(place: Path, folder: Path) -> Report | None:
    """The report of a results folder, or of the several places that it is one of; None where there is none.

    Args:
        place: the folder of all results.
        folder: the results folder, in it or itself.
    """
    several = folder != place and os.path.exists(folder.parent / store.ORDER_FILE)
    for each in (folder, folder.parent) if several else (folder,):
        parts = (*each.relative_to(place).parts, store.REPORT_FILE)
        written = _written(place, parts)
        if written is not None:
            return Report(parts, older=written < (_changed(folder / store.TRIALS_FILE) or 0))
    return None


def _written(place: Path, parts: Sequence[str]) -> int | None:
    """When a report was written, in ns; None where :func:`opened` would not open it. Opens nothing."""
    for number in range(1, len(parts)):
        if os.path.islink(place.joinpath(*parts[:number])):
            return None
    try:
        found = os.lstat(place.joinpath(*parts))
    except OSError:
        return None
    return found.st_mtime_ns if stat.S_ISREG(found.st_mode) else None


def _changed(file: Path) -> int | None:
    try:
        return os.stat(file).st_mtime_ns
    except OSError:
        return None


def opened(place: Path, parts: Sequence[str]) -> BinaryIO:
    """A file below a folder, reached without passing a symbolic link.

    Raises:
        OSError: there is none, something on the way is a link, or it is no regular file.
    """
    folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            os.close(folder)
            folder = below
        # A pipe in the place of a report must not be waited for.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        file = os.fdopen(os.open(parts[-1], flags, dir_fd=folder), "rb")
    finally:
        os.close(folder)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise FileNotFoundError(f"{parts[-1]} is no file")
    return file
