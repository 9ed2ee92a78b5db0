"""``freestone list``: the results so far, newest first."""

from __future__ import annotations

import dataclasses
import json as json_format
import sys
import textwrap
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from freestone.browse.folders import folders
from freestone.browse.listed import Listed, listed, newest_first
from freestone.browse.words import going_on, how_far, what
from freestone.commands import program, terminal
from freestone.commands.status import ExitStatus, Stop
from freestone.records.whole import why


def list_results(
    folder: Annotated[Path | None, Parameter(show=False)] = None,
    /,
    *,
    results: Annotated[Path | None, Parameter(help="The folder that holds all results. Default: results.")] = None,
    json: Annotated[bool, Parameter(negative="", help="Print JSON.")] = False,
) -> int:
    """Show the results so far, newest first: what was measured under which allocators, how far it came, who won.

    An experiment is complete when every round that was asked for has been run. One that was interrupted is shown with
    the line that goes on with it, one that is being measured as running.

    Examples:

        freestone list
        freestone list --results other-results --json

    Exit status: 0 fine, also where a folder is damaged, which is named; 2 wrong use, 5 the folder cannot be read.
    """
    if folder is not None and results is not None:
        raise Stop(f"results are of one folder: {folder} or --results {results}", ExitStatus.USAGE)
    results = folder if results is None else results  # who types the folder alone is understood
    place = Path("results") if results is None else results
    try:
        found = newest_first(listed(folder) for folder in folders(place))
    except FileNotFoundError as error:
        if results is not None:
            raise Stop(f"{place} does not exist; --results takes the folder that holds all results", 5) from error
        found = []
    except OSError as error:
        raise Stop(f"cannot read {place}: {why(error)}", ExitStatus.STORE) from error
    if json:
        print(json_format.dumps([dataclasses.asdict(each) for each in found], indent=2, ensure_ascii=False))
        return ExitStatus.FINE
    if not found:
        print(
            f"freestone: no results in {place} yet; 'freestone compare -- CMD' makes the first, "
            "--results PATH looks elsewhere",
            file=sys.stderr,
        )
    for each in found:
        if each.reason is not None:
            print(f"freestone: {each.reason}", file=sys.stderr)
    print("\n\n".join(_text(each) for each in found if each.state != "damaged"), end="\n" if found else "")
    return ExitStatus.FINE


def _text(each: Listed) -> str:
    """What a terminal shows of a results folder: its place, and indented what is known of it."""
    name = each.folder
    if terminal.has_colour(sys.stdout):
        name = f"\x1b[1m{name}\x1b[0m"
    lines = [
        how_far(each),
        what(each, max(20, 2 * terminal.width() - 40)),
        ", ".join(each.configurations or []),
        each.headline or "",
    ]
    line = going_on(each, program.tool_as_typed())
    if line is not None:
        lines.append(f"go on with: {line}")
    room = terminal.width() - 2
    wrapped = [part for line in lines for part in textwrap.wrap(line, room, break_on_hyphens=False)]
    text = "\n".join([name, *(f"  {part}" for part in wrapped)])
    return text.replace("×", "x").encode("ascii", "replace").decode() if terminal.is_ascii(sys.stdout) else text
