"""Results of several machines side by side, as the verbs that read results show them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
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


def there(name: str, what: Reported) -> list[There]:
    """What stands beside others of a results folder: little, whatever its trials are."""
    from freestone.analysis import one_machine

    if what.source is None:
        return []
    return one_machine.measured(name, what.source.experiment, what.source.records, what.source.summary)


def tables(found: Sequence[There], *, one_order: bool) -> list[SideBySide]:
    """A table for each workload that several machines have measured; none where one machine has.

    Args:
        one_order: whether they are of one folder: then also where one machine has measured it more than once.
    """
    from freestone.analysis.across import across
    from freestone.reports.across import tables as made

    return made(across(found, one_order=one_order))


def show(machines: Sequence[SideBySide]) -> None:
    """Print the tables."""
    from freestone.reports import grid

    width, colour, plain = terminal.width(), terminal.has_colour(sys.stdout), terminal.is_ascii(sys.stdout)
    for each in machines:
        print(grid.text(each.table, width=width, colour=colour, ascii_only=plain))
