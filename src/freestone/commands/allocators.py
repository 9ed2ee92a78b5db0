"""``freestone allocators``: what is here, whether it works, and how to get the rest."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from freestone.allocators import AllocatorError, Verification, configuration_for, discover, find
from freestone.allocators import verify as verified
from freestone.commands import terminal
from freestone.commands.status import ExitStatus, Stop
from freestone.records.schema import Allocator


def allocators(
    *names: Annotated[str, Parameter(help="Names or library paths. Default: all that are known.")],
    json: Annotated[bool, Parameter(negative="", help="Print JSON.")] = False,
    verify: Annotated[bool, Parameter(help="See each serve a small process.")] = True,
) -> int:
    """Show which allocators are here, whether they work, and how to get the others.

    'freestone allocators add' builds current versions of those that are not here, 'freestone allocators remove' takes
    them away again.

    Examples:

        freestone allocators
        freestone allocators ./libmymalloc.so
        freestone allocators --json --no-verify
        freestone allocators add mimalloc snmalloc

    Exit status: 0 fine, 2 unknown allocator, 4 an allocator that is here does not work.
    """
    try:
        known = discover()
        shown = find(names, known=known) if names else known
    except AllocatorError as error:
        raise Stop(str(error), ExitStatus.USAGE) from error
    tried = [each for each in shown if verify and each.available]
    verdicts = {each.name: verified(each, settings=configuration_for(each).environment) for each in tried}
    if json:
        rows = [_row(each, verdicts.get(each.name)) for each in shown]
        print(json_format.dumps(rows, indent=2, ensure_ascii=False))
    else:
        _show(shown, verdicts)
    return ExitStatus.FINE if all(each.verified for each in verdicts.values()) else ExitStatus.PARTLY_MEASURED


def _row(allocator: Allocator, verdict: Verification | None) -> dict[str, object]:
    working = None if verdict is None else {"verified": verdict.verified, "reason": verdict.reason}
    return {**allocator.model_dump(), "working": working}


def _show(shown: Sequence[Allocator], verdicts: dict[str, Verification]) -> None:
    colour = terminal.has_colour(sys.stdout)
    console = Console(
        width=terminal.width(), no_color=not colour, force_terminal=colour, highlight=False, markup=False, emoji=False
    )
    if terminal.width() < 80:
        for allocator in shown:
            console.print(Text(allocator.name, style="bold"), Text(_state(allocator, verdicts)), sep="  ")
            for line in _details(allocator):
                console.print(Text("  " + line), overflow="fold")
        return
    here = _table("allocator", "version", "works", "file, build-id")
    absent = _table("not here", "how to get it")
    for allocator in shown:
        details = Text("\n").join(Text(line) for line in _details(allocator))
        if allocator.available:
            here.add_row(allocator.name, allocator.version or "", _state(allocator, verdicts), details)
        else:
            absent.add_row(allocator.name, details)
    tables = [table for table in (here, absent) if table.row_count]
    for number, table in enumerate(tables):
        if number:
            console.print()
        console.print(table)


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in titles:
        table.add_column(title, overflow="fold", header_style="bold")
    return table


def _state(allocator: Allocator, verdicts: dict[str, Verification]) -> str:
    if not allocator.available:
        return "not here"
    return str(verdicts.get(allocator.name, "not tried"))


def _details(allocator: Allocator) -> list[str]:
    if not allocator.available:
        return [allocator.reason or "not installed"]
    lines = [f"{allocator.file} ({allocator.origin})"]
    return lines + ([allocator.build_id] if allocator.build_id else ["no build-id"])
