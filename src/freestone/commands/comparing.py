"""Two sides of a comparison, from the command line to a difference. Shared by the verbs that compare."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from freestone.analysis import difference
from freestone.analysis.difference import NotComparable, Side
from freestone.commands.status import ExitStatus, Stop
from freestone.records import store
from freestone.records.schema import Difference
from freestone.records.store import StoreError
from freestone.records.whole import why, write_whole

Subjects = Annotated[
    list[str] | None,
    Parameter(
        negative="",
        help="Of two folders: the configurations to look at. Default: those that are not the same in both.",
    ),
]
Before = Annotated[str | None, Parameter(help="Of one folder: the configuration that things are held against.")]
After = Annotated[str | None, Parameter(help="Of one folder: the configuration to look at.")]
Markdown = Annotated[Path | None, Parameter(help="Write the tables into this file as Markdown.")]


def compared(
    results: tuple[Path, ...], subjects: list[str] | None, before: str | None, after: str | None
) -> Difference:
    """The difference that was asked for.

    Raises:
        Stop: wrong use, results that cannot be read, or that must not be compared.
    """
    names = [name for given in subjects or [] for name in given.split(",") if name]
    inside = before is not None or after is not None
    if len(results) not in (1, 2):
        raise Stop("give two results folders, before and after, or one with --before and --after", ExitStatus.USAGE)
    if inside and (before is None or after is None or len(results) == 2):
        raise Stop("--before and --after go together, with one results folder", ExitStatus.USAGE)
    if not inside and len(results) == 1:
        raise Stop("one results folder is compared with --before and --after, two configurations", ExitStatus.USAGE)
    if inside and names:
        raise Stop("--subject is for two results folders", ExitStatus.USAGE)
    try:
        sides = [_side(folder) for folder in results]
        if before is not None and after is not None:
            return difference.within(sides[0], before, after)
        return difference.between(sides[0], sides[1], names)
    except NotComparable as error:
        raise Stop(str(error), ExitStatus.USAGE) from error
    except StoreError as error:
        raise Stop(str(error), ExitStatus.STORE) from error


def write(target: Path, text: str) -> None:
    """Write a Markdown document.

    Raises:
        Stop: it cannot be written.
    """
    try:
        write_whole(target, text, mode=0o644)
    except OSError as error:
        raise Stop(f"cannot write {target}: {why(error)}", ExitStatus.STORE) from error


def _side(folder: Path) -> Side:
    experiment, reading = store.read_experiment(folder), store.read_trials(folder)
    damage = store.damage_line(folder, reading.damage)
    if damage:
        print(f"freestone: {damage}", file=sys.stderr)
    return Side(experiment, reading.records)
