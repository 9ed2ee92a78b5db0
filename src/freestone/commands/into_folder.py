"""What any number of tries complete, wherever they are made: a results folder (``--into``), places (``--on``)."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from freestone.allocators import configurations, discover, present, require_known
from freestone.commands.place_options import PlaceOptions
from freestone.commands.status import ExitStatus
from freestone.records import store
from freestone.records.schema import Experiment

LOST_S: Final = 60.0
"""How long one that was lost may take to end its program and let go of its folder."""

LOOK_S: Final = 0.2


def require_names(places: PlaceOptions, asked: Sequence[str] | None, baseline: str | None) -> None:
    """A slip is told before an order is sent or a folder is made: at a place it would be one that is not there.

    Raises:
        AllocatorError: a name is in no catalogue.
    """
    if places.on is not None or places.into is not None:
        require_known(asked or [], baseline)


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


def those_here(places: PlaceOptions, asked: list[str] | None) -> list[str] | None:
    """Which of the configurations asked for can be measured here; without ``--into`` all of them have to be.

    Raises:
        AllocatorError: none can, or what was asked for is no configuration.
    """
    if places.into is None or asked is None:
        return asked
    here, missing = present(asked, known=discover())
    if missing and not here:
        raise missing[-1]
    return here


def is_short(places: PlaceOptions, asked: Sequence[str] | None, experiment: Experiment) -> bool:
    """Whether a folder goes without some of what was asked for; a line says which.

    Args:
        asked: what the user wrote; None for all that are here.
        experiment: of the folder.

    Raises:
        AllocatorError: what was asked for is no configuration.
    """
    if places.into is None or asked is None:
        return False
    known = discover()
    here, missing = present(asked, known=known)
    for error in missing:
        print(f"freestone: left out here: {error}", file=sys.stderr)
    measured = {each.name for each in experiment.configurations}
    late = [each.name for each in configurations(here, known=known) if each.name not in measured]
    if late:
        told = f"it was begun without {', '.join(late)}; give a folder that is not there yet"
        print(f"freestone: left out of {places.into}: {told}", file=sys.stderr)
    return bool(missing or late)


def status(of_the_rest: int, *, short: bool) -> int:
    """The exit status of a folder by that of what it holds: not all was measured where it goes without some."""
    return ExitStatus.PARTLY_MEASURED if short and of_the_rest == ExitStatus.FINE else of_the_rest
