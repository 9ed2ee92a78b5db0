"""Where the installed native parts are: the library, the launcher and the witness.

The wheel carries them in ``freestone/_native``; an editable install redirects there too.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


class NativePartMissing(RuntimeError):
    """A native part is not where the installation should have put it."""


def path(name: str) -> Path:
    """Absolute path of an installed native part, e.g. ``libfreestone.so`` or ``freestone-launch``.

    Raises:
        NativePartMissing: the file is not there; the message says how to build it.
    """
    for base in _folders():
        candidate = base / name
        if candidate.is_file():
            return candidate.resolve()
    raise NativePartMissing(f"native part '{name}' is not installed; run 'make build' or reinstall freestone")


def folder(name: str) -> Path:
    """Absolute path of a folder of installed native parts; one that does not exist where nothing was installed."""
    candidates = [base / name for base in _folders()]
    return next((candidate for candidate in candidates if candidate.is_dir()), candidates[0]).absolute()


def _folders() -> list[Path]:
    root = files("freestone") / "_native"
    paths = getattr(root, "_paths", None)  # an editable install spreads a package over several folders
    return [Path(str(p)) for p in paths] if paths else [Path(str(root))]
