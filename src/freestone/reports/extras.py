"""What figures need that the rest does without: the libraries of the extra ``figures``."""

from __future__ import annotations

from importlib.util import find_spec

from freestone.records import installation

LIBRARIES = ("altair", "jinja2", "markupsafe", "vl_convert")


def missing() -> str | None:
    """How to get what figures need, as a part of a sentence; None where all of it is there."""
    if all(find_spec(name) is not None for name in LIBRARIES):
        return None
    return f"the figures need: {installation.to_get('figures', LIBRARIES)}"
