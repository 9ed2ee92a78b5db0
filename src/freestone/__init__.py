"""Freestone: run any program under any allocator, prove which one served it, measure honestly."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from freestone.notebook import MissingLibrary, Results, load

__all__ = ["MissingLibrary", "Results", "__version__", "load"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """What a notebook uses, loaded when it is asked for: a command line does without."""
    if name in ("MissingLibrary", "Results", "load"):
        from freestone import notebook

        return getattr(notebook, name)
    raise AttributeError(f"module 'freestone' has no attribute '{name}'")
