"""What a diagnosis leaves beside its record: drawings in the terminal, and its page."""

from __future__ import annotations

import sys
from pathlib import Path

from freestone.analysis.pareto import Goal
from freestone.commands import terminal
from freestone.commands.terminal import say
from freestone.doctor import diagnosis, over_time
from freestone.doctor.observations import Observations
from freestone.records import store
from freestone.records.store import StoreError
from freestone.reports import extras


def draw(seen: Observations) -> None:
    """Print its sizes and its faults over time; a line where there is nothing to draw and nothing has said why."""
    drawn = over_time.drawn(seen, width=terminal.width(), ascii_only=terminal.is_ascii(sys.stdout))
    if drawn:
        print(drawn)
    elif "course" in seen.done and "course" not in seen.unseen:
        print(f"{over_time.lacking(seen)}\n")


def write(folder: Path, goal: Goal | None = None, *, quiet: bool = False) -> None:
    """Write the page into the folder, and say where; a line instead where the libraries of figures are not here.

    Args:
        goal: what the cure is for; None for what the diagnosis was asked for.
        quiet: print nothing of it.

    Raises:
        StoreError: the folder cannot be read, or the page not written.
    """
    lacking = extras.missing()
    if lacking is not None:
        sys.stdout.flush()
        say(f"no {store.REPORT_FILE}: {lacking}")
        return
    from freestone.doctor.page import diagnosis_part  # late: the figures' libraries are large
    from freestone.reports import html

    try:
        written = html.write_parts([diagnosis_part(diagnosis.read(folder, goal))], folder / store.REPORT_FILE)
    except html.ReportError as error:
        raise StoreError(str(error)) from error
    if not quiet:
        print(f"Report:  {written}")
