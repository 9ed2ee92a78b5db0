"""Which results folders there are below a folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from freestone.browse.listed import NAMED
from freestone.doctor import chart as charts
from freestone.doctor import diagnosis
from freestone.records import store

Children = Callable[[Path], list[Path]]


def list_children(folder: Path) -> list[Path]:
    """What a folder holds, read from the disk.

    Raises:
        OSError: it cannot be read.
    """
    return list(folder.iterdir())


def folders(place: Path, children: Children = list_children) -> list[Path]:
    """The results folders in a folder; or that folder, where it is one itself.

    Args:
        place: the folder that holds all results, or one of them.
        children: gives what a folder holds.

    Raises:
        OSError: it cannot be read.
    """
    if os.path.exists(place / store.EXPERIMENT_FILE) or diagnosis.is_one(place):
        return [place]
    found = [each for each in sorted(children(place)) if os.path.isdir(each) and _is_one(each)]
    return [each for folder in found for each in _places(folder, children)]


def _places(folder: Path, children: Children) -> list[Path]:
    """The results folders of several places; where they cannot be read the folder itself: its reader says why."""
    try:
        return store.places(folder, children)
    except OSError:
        return [folder]


def _is_one(folder: Path) -> bool:
    """Whether a folder holds results, or was made to."""
    if folder.name.startswith("."):  # what is being put together, or was left by whoever was killed at that
        return False
    files = (store.EXPERIMENT_FILE, store.TRIALS_FILE, store.ORDER_FILE, charts.CHART, charts.OBSERVATIONS)
    return NAMED.match(folder.name) is not None or any(os.path.exists(folder / name) for name in files)
