"""A results folder that any number of tries complete: ``--into``."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from freestone.allocators import discover, present
from freestone.records import store

LOST_S: Final = 60.0
"""How long one that was lost may take to end its program and let go of its folder."""

LOOK_S: Final = 0.2


def begun_already(folder: Path) -> Path | None:
    """The folder, where an experiment was begun in it.

    Whoever was lost and has not noticed yet may still write to it: that is waited for.
    """
    if not (folder / store.EXPERIMENT_FILE).exists():
        return None
    end = time.monotonic() + LOST_S
    while store.is_being_written(folder) and time.monotonic() < end:
        time.sleep(LOOK_S)
    return folder


def those_here(asked: Sequence[str]) -> list[str]:
    """Which of the configurations asked for can be measured here; a line for each that cannot.

    Raises:
        AllocatorError: none can, or what was asked for is no configuration.
    """
    here, missing = present(asked, known=discover())
    if missing and not here:
        raise missing[-1]
    for error in missing:
        print(f"freestone: left out here: {error}", file=sys.stderr)
    return here
