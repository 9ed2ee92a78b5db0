"""The results below a folder, kept between looks: a folder in which nothing has changed is not read again."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

from freestone.browse.folders import folders, list_children
from freestone.browse.listed import Listed, listed, newest_first
from freestone.doctor import chart as charts
from freestone.records import locks, store
from freestone.tuning import kept

READ: Final = (
    store.EXPERIMENT_FILE,
    store.SUMMARY_FILE,
    store.TRIALS_FILE,
    charts.CHART,
    charts.OBSERVATIONS,
    kept.TUNING_FILE,
)
"""Files of a results folder on which what is told of it depends."""

SETTLED_S: Final = 1.0
"""How old a change has to be before a second one at the same time can be ruled out: clocks of file systems tick, some
of them once a second."""

State = tuple[tuple[int, int, int] | bool | None, ...]
"""Of each file its inode, size and time of change in ns; None where it is not there. Then whether it is written to."""


Content = TypeVar("Content")


@dataclass(frozen=True)
class _Kept(Generic[Content]):
    state: State
    content: Content


class Shelf:
    """What is told of all results below a folder.

    A look asks the system for the time, size and inode of some files of each folder, and opens those that have changed.
    Looks of several threads follow each other.
    """

    def __init__(self, place: Path, *, clock: Callable[[], float] = time.time) -> None:
        """Read nothing yet.

        Args:
            place: the folder that holds all results, or one of them.
            clock: seconds, as file systems have them.
        """
        self.place = place
        self._clock = clock
        self._turn = threading.Lock()
        self._children: dict[Path, _Kept[list[Path]]] = {}
        self._told: dict[Path, _Kept[Listed]] = {}

    def look(self) -> list[Listed]:
        """What is told of each results folder that is there now, newest first.

        Raises:
            OSError: the folder of all results cannot be read.
        """
        with self._turn:
            locked = locks.held_files()
            found = folders(self.place, self._list_children)
            told = {folder: self._listed(folder, locked) for folder in found}
            self._told = {folder: self._told[folder] for folder in found if folder in self._told}
            return newest_first(told.values())

    def _listed(self, folder: Path, locked: locks.Held) -> Listed:
        batches = _batches(folder)
        files = [folder, *(folder / name for name in READ), *(batch / store.EXPERIMENT_FILE for batch in batches)]
        written = (store.is_being_written(each, locked) for each in (folder, *batches))
        state = (*(_state(file) for file in files), *written)
        before = self._told.pop(folder, None)
        if before is not None and before.state == state:
            self._told[folder] = before
            return before.content
        now = listed(folder)
        if self._is_settled(state):
            self._told[folder] = _Kept(state, now)
        return now

    def _list_children(self, folder: Path) -> list[Path]:
        state = (_state(folder),)
        before = self._children.pop(folder, None)
        if before is None or before.state != state:
            before = _Kept(state, list_children(folder))
        if self._is_settled(state):
            self._children[folder] = before
        return before.content

    def _is_settled(self, state: State) -> bool:
        """Whether whatever changes from now on is seen by the times of files."""
        latest = max((each[2] for each in state if isinstance(each, tuple)), default=0)
        return latest < (self._clock() - SETTLED_S) * 1e9


def _batches(folder: Path) -> list[Path]:
    """The parts of a search that has no finalists yet: whether it goes on shows there."""
    if not os.path.exists(folder / kept.TUNING_FILE) or os.path.exists(folder / store.EXPERIMENT_FILE):
        return []
    try:
        return sorted((folder / kept.SEARCH_FOLDER).iterdir())
    except OSError:
        return []


def _state(file: Path) -> tuple[int, int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
