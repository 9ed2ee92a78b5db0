"""The report of a result, and its file opened: nothing else below the folder of all results is."""

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


def report_in(place: Path, folder: Path, trials: Path) -> Report | None:
    """The report in a folder; None where there is none.

    Args:
        place: the folder of all results.
        folder: in it, or itself.
        trials: a file of trials that the report is about.
    """
    parts = (*folder.relative_to(place).parts, store.REPORT_FILE)
    written = _written(place, parts)
    return None if written is None else Report(parts, older=written < (_changed(trials) or 0))


def is_of_several(place: Path, folder: Path) -> bool:
    """Whether a results folder is one of several places, whose folder is on the page too."""
    return folder != place and os.path.exists(folder.parent / store.ORDER_FILE)


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
