"""The user's cache, and texts in it that take seconds to make and are the same every time."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from freestone.records.whole import write_whole


def home(environment: Mapping[str, str] = os.environ) -> Path:
    """The user's home folder; one that is not there for an account that has none."""
    try:
        return Path(environment.get("HOME") or "~").expanduser()
    except RuntimeError:
        return Path("/nonexistent")


def expanded(path: str) -> Path:
    """A path with the home folder that it begins with, as in ``~/x``; as it is where there is no such home."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the lab keeps what can be made again: ``$XDG_CACHE_HOME/freestone``. It need not exist."""
    return Path(environment.get("XDG_CACHE_HOME") or home(environment) / ".cache") / "freestone"


def text(name: str, make: Callable[[], str], kept: Path | None = None) -> str:
    """What ``make`` gives, from the cache where it lies there undamaged.

    A cache that cannot be read or written costs the time of making and nothing else.

    Args:
        name: of the file; another name for whatever changes the text, such as the version of what makes it.
        make: gives the text.
        kept: the folder; None for ``texts`` in :func:`folder`.
    """
    place = (folder() / "texts" if kept is None else kept) / name
    with suppress(OSError, UnicodeDecodeError):
        digest, _, content = place.read_bytes().decode().partition("\n")
        if digest == _digest(content):
            return content
    content = make()
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place, f"{_digest(content)}\n{content}", mode=0o644)
    return content


def _digest(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()
