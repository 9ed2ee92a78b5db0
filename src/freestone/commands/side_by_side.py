"""Results of several machines side by side, as the verbs that read results show them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from freestone.commands import terminal

if TYPE_CHECKING:  # what reads and draws results is large, and the help needs none of it
    from freestone.commands.reported import Reported
    from freestone.reports.grid import Grid


def grids(found: Sequence[Reported]) -> list[Grid]:
    """A table for each workload that several machines have measured; none where one machine has."""
    from freestone.analysis.across import across
    from freestone.records import store
    from freestone.reports.across import grids as made

    names = [each.folder.resolve().name for each in found]
    results = [
        (name if names.count(name) == 1 else str(each.folder), each.source.experiment, each.source.summary)
        for name, each in zip(names, found, strict=True)
        if each.source is not None
    ]
    parents = {each.folder.resolve().parent for each in found}
    one_order = len(parents) == 1 and all((parent / store.ORDER_FILE).exists() for parent in parents)
    return made(across(results, one_order=one_order))


def show(machines: Sequence[Grid]) -> None:
    """Print the tables."""
    from freestone.reports import grid

    width, colour, plain = terminal.width(), terminal.has_colour(sys.stdout), terminal.is_ascii(sys.stdout)
    for each in machines:
        print(grid.text(each, width=width, colour=colour, ascii_only=plain))
