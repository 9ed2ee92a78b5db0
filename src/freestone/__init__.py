"""Freestone: run any program under any allocator, prove which one served it, measure honestly."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from freestone.frames import Frames

__all__ = ["__version__", "load"]

__version__ = "0.1.0"


def load(folder: str | Path) -> Frames:
    """Read a results folder as pandas data frames; see :func:`freestone.frames.load`."""
    from freestone import frames  # late: the command line does without

    return frames.load(folder)
