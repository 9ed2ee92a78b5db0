"""Results of several machines side by side, as the verbs that read results show them."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

from freestone.commands import terminal

if TYPE_CHECKING:  # what reads and draws results is large, and the help needs none of it
    from freestone.analysis.across import LeftOut
    from freestone.analysis.across.there import There
    from freestone.commands.reported import Reported
    from freestone.records.schema import Experiment
    from freestone.reports.across import SideBySide


_NOTHING_YET: Final = "nothing measured yet"


def names(folders: Sequence[Path]) -> list[str]:
    """What to call the machines of some results folders: the folder's name, or all of its path where two have one.

    No two are called the same; where links to folders would be, each has the path without links.

    Args:
        folders: no two of them are one.
    """
    short = [each.resolve().name for each in folders]
    alike = Counter(short)
    told = [name if alike[name] == 1 else str(each) for name, each in zip(short, folders, strict=True)]
    alike = Counter(told)
    return [name if alike[name] == 1 else str(each.resolve()) for name, each in zip(told, folders, strict=True)]


def folder_names(folders: Sequence[Path]) -> list[str]:
    """The same names as those of folders on one level: without slashes, and no two alike.

    Args:
        folders: no two of them are one.
    """
    taken: list[str] = []
    for name in names(folders):
        told = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "results"
        numbered = (f"{told}-{number}" for number in count(2))
        taken.append(told if told not in taken else next(each for each in numbered if each not in taken))
    return taken


class Collected:
    """What stands side by side, from results that are read one after the other: little of each is kept."""

    def __init__(self, *, one_order: bool, order: Path | None = None) -> None:
        """Begin with nothing.

        Args:
            one_order: whether they are of one folder: then also where one machine has measured more than once.
            order: that folder, which may say which places it is of; None where there is none.
        """
        from freestone.analysis.across.beside import Beside

        self._one_order = one_order
        self._order = order
        self._beside = Beside(one_order=one_order)
        self._found: list[There] = []
        self._measurements: dict[str, str] = {}

    @property
    def machines(self) -> int:
        """How many machines there is something of."""
        return len({each.machine for each in self._found})

    def add(self, name: str, what: Reported) -> None:
        """Take in what a results folder says.

        Args:
            name: of its machine.
            what: the folder, read.
        """
        from freestone.analysis.across import one_machine
        from freestone.analysis.sides import Side

        if what.source is None:
            return
        experiment, records = what.source.experiment, what.source.records
        self._measurements[_identity(experiment)] = name
        works = self._beside.take(Side(experiment, records))
        self._found += one_machine.measured(name, experiment, records, what.source.summary, works)

    def tables(self) -> list[SideBySide]:
        """A table for each workload that several machines have measured; none where one machine has.

        Where there is none to say it, a line names the places of the order that have nothing.
        """
        from freestone.analysis.across import across
        from freestone.reports.across import tables as made
        from freestone.reports.across_said import listed

        absent = self._absent()
        works = self._beside.works()
        results = [replace(each, works=tuple(works[work] for work in each.works)) for each in self._found]
        found = across(results, one_order=self._one_order, why=self._beside.why, absent=absent)
        for each in absent if not found else ():
            if each.why == _NOTHING_YET:
                print(f"freestone: {each.why} at {listed(each.places, 'place')}", file=sys.stderr)
        return made(found)

    def _absent(self) -> list[LeftOut]:
        """Places of the order that there is nothing of."""
        from freestone.analysis.across import LeftOut
        from freestone.records import store

        if self._order is None or not (self._order / store.ORDER_FILE).exists():
            return []
        try:
            ordered = [place.name for place in store.read_order(self._order).places]
        except store.StoreError as error:
            print(f"freestone: which places are missing is not known: {error}", file=sys.stderr)
            return []
        told = {each.place for each in self._found}
        absent = [name for name in ordered if name not in told]
        by_reason: dict[str, list[str]] = {}
        for name in absent:
            by_reason.setdefault(self._why_absent(self._order / name), []).append(name)
        return [LeftOut(places, why) for why, places in by_reason.items()]

    def _why_absent(self, folder: Path) -> str:
        from freestone.records import store

        if not (folder / store.EXPERIMENT_FILE).exists():
            return _NOTHING_YET
        twin = self._measurements.get(_measurement(folder))
        return "cannot be read" if twin is None else f"the same measurement as {twin}"


def once(folders: Sequence[Path]) -> list[Path]:
    """Some results folders, each measurement once, with a line for each that was there already.

    Of copies of one measurement, that with most trials is taken: the others were made while it ran.
    """
    taken: dict[str, int] = {}
    for number, folder in enumerate(folders):
        before = taken.setdefault(_measurement(folder), number)
        if before != number:
            more, less = (number, before) if _size(folder) > _size(folders[before]) else (before, number)
            taken[_measurement(folder)] = more
            print(
                f"freestone: {folders[less]} is the same measurement as {folders[more]}: it counts once",
                file=sys.stderr,
            )
    return [folders[number] for number in sorted(taken.values())]


def _measurement(folder: Path) -> str:
    """What is equal for copies of one measurement."""
    from freestone.records import store

    try:
        return _identity(store.read_experiment(folder))
    except store.StoreError:  # whoever reads it tells of it
        return f"only {folder.resolve()}"


def _identity(experiment: Experiment) -> str:
    return f"{experiment.id} on {experiment.machine.id}"


def _size(folder: Path) -> int:
    from freestone.records import store

    trials = folder / store.TRIALS_FILE
    return trials.stat().st_size if trials.exists() else 0


def tables(found: Iterable[tuple[str, Reported]], *, one_order: bool, order: Path | None = None) -> list[SideBySide]:
    """What :class:`Collected` has of some results folders, each with the name of its machine."""
    collected = Collected(one_order=one_order, order=order)
    for name, what in found:
        collected.add(name, what)
    return collected.tables()


def show(machines: Sequence[SideBySide]) -> None:
    """Print the tables."""
    from freestone.reports import grid

    width, colour, plain = terminal.width(), terminal.has_colour(sys.stdout), terminal.is_ascii(sys.stdout)
    for each in machines:
        print(grid.text(each.table, width=width, colour=colour, ascii_only=plain))
