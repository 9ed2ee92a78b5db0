"""A results folder that any number of tries complete (``--into``), as the machines of an order do (``--on``)."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from freestone.allocators import configurations, discover, present, require_known
from freestone.commands.place_options import PlaceOptions
from freestone.commands.status import ExitStatus
from freestone.experiments.plan import PlanError
from freestone.records import store
from freestone.records.schema import Experiment

LOST_S: Final = 60.0
"""How long a lab that lost its connection may take to end its program and close its folder."""

LOOK_S: Final = 0.2

OPTIONS_HERE: Final = (
    *("--on", "--results", "--resume", "--into"),
    *("--export-markdown", "--export-csv", "--export-json", "--markdown", "--subject"),
)
"""Options with a value that say only where results go and how they are shown."""

FLAGS_HERE: Final = ("--json", "--report", "--no-report")


def measured(typed: Sequence[str]) -> list[str]:
    """Return a command line without the options that say only where results go and how they are shown. Pure.

    Args:
        typed: the verb and all behind it.
    """
    found: list[str] = []
    words = iter(typed)
    for word in words:
        if word == "--":
            return [*found, word, *words]
        name, sign, _ = word.partition("=")
        if name in OPTIONS_HERE:
            if not sign:
                next(words, None)
        elif name not in FLAGS_HERE:
            found.append(word)
    return found


def require_names(places: PlaceOptions, asked: Sequence[str] | None, baseline: str | None) -> None:
    """Refuse a misspelt allocator before anything is sent: elsewhere it would only be absent.

    Raises:
        AllocatorError: a name is in no catalogue.
    """
    if places.on is not None or places.into is not None:
        require_known(asked or [], baseline)


def begun_already(folder: Path) -> Path | None:
    """Return the folder if an experiment was begun in it; wait for a lab that still writes to it."""
    if not (folder / store.EXPERIMENT_FILE).exists():
        return None
    end = time.monotonic() + LOST_S
    while store.is_being_written(folder) and time.monotonic() < end:
        time.sleep(LOOK_S)
    return folder


def require_same_line(folder: Path, typed: Sequence[str]) -> None:
    """Refuse to continue a folder by a line that asks for something else than the one that began it.

    Args:
        folder: a results folder.
        typed: the verb and all behind it.

    Raises:
        PlanError: it does.
        StoreError: the folder cannot be read.
    """
    begun = measured(store.read_experiment(folder).command_line[1:])
    if begun and begun != measured(typed):
        raise PlanError(f"cannot resume {folder}: another line began it: freestone {shlex.join(begun)}")


def those_here(places: PlaceOptions, asked: list[str] | None) -> list[str] | None:
    """Return the configurations that can be measured here; without ``--into`` all of them have to be.

    Raises:
        AllocatorError: none can, or a word is no configuration.
    """
    if places.into is None or asked is None:
        return asked
    here, missing = present(asked, known=discover())
    if missing and not here:
        raise missing[-1]
    return here


def is_short(places: PlaceOptions, asked: Sequence[str] | None, experiment: Experiment) -> bool:
    """Return whether a folder lacks configurations that were asked for, and print a line for each.

    Args:
        places: says whether a folder was named at all.
        asked: as the user wrote them; None for all that are here.
        experiment: of the folder.

    Raises:
        AllocatorError: a word is no configuration.
    """
    if places.into is None or asked is None:
        return False
    known = discover()
    here, missing = present(asked, known=known)
    for error in missing:
        print(f"freestone: left out here: {error}", file=sys.stderr)
    began = {each.name for each in experiment.configurations}
    late = [each.name for each in configurations(here, known=known) if each.name not in began]
    if late:
        why = f"it was begun without {', '.join(late)}; give a folder that is not there yet"
        print(f"freestone: left out of {places.into}: {why}", file=sys.stderr)
    return bool(missing or late)


def status(of_the_rest: int, *, short: bool) -> int:
    """Return the exit status of a folder: its own, but not all was measured if configurations are missing."""
    return ExitStatus.PARTLY_MEASURED if short and of_the_rest == ExitStatus.FINE else of_the_rest
