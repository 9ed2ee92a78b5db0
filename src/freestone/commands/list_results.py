"""``freestone list``: the results so far, newest first."""

from __future__ import annotations

import dataclasses
import json as json_format
import shlex
import sys
import textwrap
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from freestone.commands import program, terminal
from freestone.commands.listed import Listed, folders, listed
from freestone.commands.status import ExitStatus, Stop
from freestone.records.whole import why

_RESUMING: Final = ("bench", "doctor")
"""Verbs that go on with their own results; compare does with all others."""


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
        found = sorted(map(listed, folders(place)), key=lambda each: each.created_at or "", reverse=True)
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


def how_far(listed: Listed) -> str:
    """When it was begun, and how much of what was asked for is done."""
    return f"{when(listed.created_at or '')}, {listed.state}: {progress(listed)}"


def progress(listed: Listed) -> str:
    """How much of what was asked for is done."""
    if listed.rounds is None:
        return "looked at, nothing tried"
    done, asked = listed.rounds_complete or 0, listed.rounds
    if listed.time_budget_s is not None:
        return f"{done} round{'' if done == 1 else 's'} within {listed.time_budget_s:g} s"
    return f"{done} of {asked} rounds"


def what(listed: Listed, room: int | None = None) -> str:
    """What was measured: the suites, or the command.

    Args:
        room: characters for the command; None for all of it.
    """
    count = listed.workloads or 0
    if listed.suites is not None:
        return f"bench {' '.join(listed.suites)} ({count} workload{'' if count == 1 else 's'})"
    command = shlex.join(listed.command or [])
    shown = command if room is None or len(command) <= room else command[: room - 3] + "..."
    return f"{listed.verb} -- {shown}" + (f" (and {count - 1} more)" if count > 1 else "")


def when(created_at: str) -> str:
    """A time of the records as people read it, in UTC."""
    try:
        return f"{datetime.fromisoformat(created_at).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError):  # of a clock far from ours
        return created_at


def going_on(listed: Listed, tool: str) -> str | None:
    """The line that goes on with what was interrupted; None where nothing was.

    Args:
        tool: what starts freestone.
    """
    if listed.state != "interrupted":
        return None
    verb = listed.verb if listed.verb in _RESUMING else "compare"
    return f"{tool} {verb} --resume {shlex.quote(listed.order or listed.folder)}"
