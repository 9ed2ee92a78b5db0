"""What goes into ``LD_PRELOAD``, and how files whose path it cannot hold get there."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

# The loader splits at spaces and colons and expands $ORIGIN, $LIB and $PLATFORM.
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


def user_preload(*environments: Mapping[str, str]) -> list[str]:
    """What the user preloads already, from the last environment that says so; it stays, behind ours."""
    value = ""
    for environment in (os.environ, *environments):
        value = environment.get("LD_PRELOAD", value)
    return re.findall(r"[^\s:]+", value)
