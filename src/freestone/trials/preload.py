"""What goes into ``LD_PRELOAD``, and how files whose path it cannot hold get there."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

# The loader splits at spaces and colons and expands $ORIGIN, $LIB and $PLATFORM.
_LENGTH = 256
"""Values of ``LD_PRELOAD`` are multiples of this: two ordinary paths fit, and the loader takes 4096 for each."""

_UNSPEAKABLE = re.compile(r"[\s:$]")


def speakable_folder(near: Path, prefix: str) -> Path:
    """A new folder under ``near``, or under the system's temporary folder when ``near`` cannot be put in a preload."""
    near = near.absolute()
    return Path(tempfile.mkdtemp(prefix=prefix, dir=None if _UNSPEAKABLE.search(str(near)) else near))


def speakable(files: Iterable[str], folder: Path) -> list[str]:
    """The files, each under a path the loader can read: by a link in ``folder`` where its own has spaces or colons."""
    named: list[str] = []
    for number, file in enumerate(files):
        if _UNSPEAKABLE.search(file):
            link = folder / f"preload-{number}.so"
            link.symlink_to(file)
            file = str(link)
        named.append(file)
    return named


def named_in(environment: Mapping[str, str]) -> list[str]:
    """What an environment preloads already; it stays, behind ours."""
    return re.findall(r"[^\s:]+", environment.get("LD_PRELOAD", ""))


def of_equal_length(files: Sequence[str]) -> list[str]:
    """The files under paths that are, put together, as long as those of any other allocator.

    ``LD_PRELOAD`` lies on the stack and the loader keeps a copy of each path, so a longer path moves what comes after
    it. A path leads to the same file with more slashes before its last name, and so does a library's ``$ORIGIN``.
    """
    if not files:
        return []
    folder, slash, name = files[-1].rpartition("/")
    missing = -len(os.fsencode(":".join(files))) % _LENGTH
    return [*files[:-1], folder + slash + "/" * missing + name if slash else name]
