"""Results of several machines side by side, as the verbs that read results show them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from freestone.commands import terminal

if TYPE_CHECKING:  # what reads and draws results is large, and the help needs none of it
    from freestone.analysis.one_machine import There
    from freestone.commands.reported import Reported
    from freestone.reports.across import SideBySide


def names(folders: Sequence[Path]) -> list[str]:
    """What to call the machines of some results folders: the folder's name, or all of its path where two have one."""
    short = [each.resolve().name for each in folders]
    count = Counter(short)
    return [name if count[name] == 1 else str(each) for name, each in zip(short, folders, strict=True)]


class Collected:
    """What stands side by side, from results that are read one after the other: little of each is kept."""

    def __init__(self, *, one_order: bool) -> None:
        """Args: one_order: whether they are of one folder: then also where one machine has measured more than once."""
        from freestone.analysis.beside import Beside

        self._one_order = one_order
        self._beside = Beside(one_order=one_order)
        self._found: list[There] = []

    @property
    def places(self) -> int:
        """How many places there is something of."""
        return len({each.place for each in self._found})

    def add(self, name: str, what: Reported) -> None:
        """Take in what a results folder says.

        Args:
            name: of its machine.
            what: the folder, read.
        """
        from freestone.analysis import one_machine
        from freestone.analysis.sides import Side

        if what.source is None:
            return
        experiment, records = what.source.experiment, what.source.records
        works = self._beside.sort(Side(experiment, records))
        self._found += one_machine.measured(name, experiment, records, what.source.summary, works)

    def tables(self) -> list[SideBySide]:
        """A table for each workload that several machines have measured; none where one machine has."""
        from freestone.analysis.across import across
        from freestone.reports.across import tables as made

        return made(across(self._found, one_order=self._one_order, why=self._beside.why))


def tables(found: Iterable[tuple[str, Reported]], *, one_order: bool) -> list[SideBySide]:
    """What :class:`Collected` has of some results folders, each with the name of its machine."""
    collected = Collected(one_order=one_order)
    for name, what in found:
        collected.add(name, what)
    return collected.tables()


def show(machines: Sequence[SideBySide]) -> None:
    """Print the tables."""
    from freestone.reports import grid

    width, colour, plain = terminal.width(), terminal.has_colour(sys.stdout), terminal.is_ascii(sys.stdout)
    for each in machines:
        print(grid.text(each.table, width=width, colour=colour, ascii_only=plain))
