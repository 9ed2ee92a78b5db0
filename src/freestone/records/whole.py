"""Writes a file whole or not at all: a reader never sees half a document, and a full disk leaves the old one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, text: str, *, mode: int | None = None, new: bool = False) -> None:
    """Put ``text`` (as UTF-8) where ``path`` says, synced to the disk before it takes an earlier file's place.

    Args:
        path: in a folder that exists.
        text: the whole content.
        mode: of the file; None for what the user's umask leaves.
        new: whether it must not be there yet. It is the file system that says so, not a look before: on a shared one a
            look may be late.

    Raises:
        OSError: it could not be written, or is there and must not be; an earlier file is as it was.
    """
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~umask() if mode is None else mode)
        if new:
            _link(temporary, path)
        else:
            os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _link(temporary: str, path: Path) -> None:
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links, as cards and some shares have
        if path.exists():
            raise
        os.replace(temporary, path)


def why(error: OSError) -> str:
    """What the system said, as the end of a sentence."""
    return (error.strerror or str(error)).lower()


def umask() -> int:
    """The mask of this process for new files. A moment without one: for one thread alone."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
