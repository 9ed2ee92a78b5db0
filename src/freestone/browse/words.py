"""What is told of results folders, in words. Pure."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from typing import Final

from freestone.browse.listed import Listed

_RESUMING: Final = ("bench", "doctor", "tune")
"""Verbs that go on with their own results; compare does with all others."""


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
