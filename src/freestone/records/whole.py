"""Writes a file whole or not at all: a reader never sees half a document, and a full disk leaves the old one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, text: str, *, mode: int | None = None) -> None:
    """Put ``text`` (as UTF-8) where ``path`` says, synced to the disk before it takes an earlier file's place.

    Args:
        path: in a folder that exists.
        text: the whole content.
        mode: of the file; None for what the user's umask leaves.

    Raises:
        OSError: it could not be written; an earlier file is as it was.
    """
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~umask() if mode is None else mode)
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def why(error: OSError) -> str:
    """What the system said, as the end of a sentence."""
    return (error.strerror or str(error)).lower()


def umask() -> int:
    """The mask of this process for new files. A moment without one: for one thread alone."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
