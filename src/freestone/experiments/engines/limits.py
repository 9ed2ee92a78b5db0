"""How much is taken from a place, which may hold a file too large for whoever fetches it, or send without end."""

from __future__ import annotations

from typing import Final

from freestone.experiments.engines import Unreachable

MOST_BYTES: Final = 1 << 30
"""Of the results of one place: thousands of trials with all their samples are a few hundred MiB."""

MOST_FILES: Final = 10_000
"""A results folder has a dozen."""

MOST_TOLD_BYTES: Final = 1 << 16
"""Of what a command says to standard error, of which the end is told; and of one line of it."""


def require_taken(size: int, files: int) -> None:
    """Raise Unreachable where it is more than is taken of one place.

    Args:
        size: bytes of all files.
        files: how many there are.
    """
    if size > MOST_BYTES:
        raise Unreachable(f"what it has measured is more than {MOST_BYTES >> 20} MiB, which is not brought here")
    if files > MOST_FILES:
        raise Unreachable(f"what it has measured is more than {MOST_FILES} files, which are not brought here")
