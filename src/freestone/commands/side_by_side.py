"""Results folders that stand on one report: their names, copies among them, and the tables of machines side by side."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from freestone.commands import terminal

if TYPE_CHECKING:  # what reads and draws results is large, and the help needs none of it
    from freestone.commands.reported import Reported
    from freestone.reports.grid import Grid


def names(folders: Sequence[Path]) -> list[str]:
    """Return names for results folders, no two alike: the folder's name, or its path if two have one name.

    Args:
        folders: no two of them are one.
    """
    short = [each.resolve().name for each in folders]
    alike = Counter(short)
    told = [name if alike[name] == 1 else str(each) for name, each in zip(short, folders, strict=True)]
    alike = Counter(told)
    return [name if alike[name] == 1 else str(each.resolve()) for name, each in zip(told, folders, strict=True)]


def folder_names(folders: Sequence[Path]) -> list[str]:
    """Return the same names as those of folders on one level: without slashes, and no two alike.

    Args:
        folders: no two of them are one.
    """
    taken: list[str] = []
    for name in names(folders):
        told = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "results"
        numbered = (f"{told}-{number}" for number in count(2))
        taken.append(told if told not in taken else next(each for each in numbered if each not in taken))
    return taken


def once(folders: Sequence[Path]) -> list[Path]:
    """Return results folders, of copies of one measurement the one with most trials, and print a line for each other.

    A copy may have been made while the measurement ran.
    """
    taken: dict[str, Path] = {}
    for folder in folders:
        key = _measurement(folder)
        before = taken.setdefault(key, folder)
        if before is not folder:
            more, less = (folder, before) if _size(folder) > _size(before) else (before, folder)
            taken[key] = more
            print(f"freestone: {less} is the same measurement as {more}: it counts once", file=sys.stderr)
    kept = list(taken.values())
    return [folder for folder in folders if any(folder is each for each in kept)]


def _measurement(folder: Path) -> str:
    from freestone.records import store

    try:
        experiment = store.read_experiment(folder)
    except store.StoreError:  # its reader says so
        return f"only {folder.resolve()}"
    return f"{experiment.id} on {experiment.machine.id}"


def _size(folder: Path) -> int:
    from freestone.records import store

    trials = folder / store.TRIALS_FILE
    return trials.stat().st_size if trials.exists() else 0


def tables(names: Sequence[str], found: Sequence[Reported], order: Path | None) -> list[Grid]:
    """Return a table for each workload that several results have; if there is none, print a line for places that lack.

    Args:
        names: of the results.
        found: the results.
        order: the folder of which all of them are, if that is one.
    """
    from freestone.analysis.across import Result, across
    from freestone.analysis.sides import Side
    from freestone.records import store
    from freestone.reports import across as shown

    results = [
        Result(name, Side(each.source.experiment, each.source.records), each.source.summary)
        for name, each in zip(names, found, strict=True)
        if each.source is not None
    ]
    lacking = []
    if order is not None and (order / store.ORDER_FILE).exists():
        begun = {each.name for each in store.places(order)}
        lacking = [each.name for each in store.read_order(order).places if each.name not in begun]
    made = shown.tables(across(results), lacking)
    if lacking and not made:
        print(f"freestone: {shown.no_results(lacking)}", file=sys.stderr)
    return made


def show(machines: Sequence[Grid]) -> None:
    """Print the tables."""
    from freestone.reports import grid

    width, colour, plain = terminal.width(), terminal.has_colour(sys.stdout), terminal.is_ascii(sys.stdout)
    for each in machines:
        print(grid.text(each, width=width, colour=colour, ascii_only=plain))
