"""A report of more machines than can stand on one page whole: side by side by kind, and each by itself in a row.

Of each folder is kept what stands beside others, and nothing of its trials: what a thousand machines take of memory is
little more than what one takes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from freestone.commands import reported, side_by_side
from freestone.commands.status import ExitStatus, Stop
from freestone.records.store import StoreError
from freestone.reports import extras

MOST_WHOLE: Final = 16
"""So many machines of an order stand on a page with all that there is of each."""


def report(order: Path, folders: Sequence[Path], destination: Path | None, *, as_json: bool) -> ExitStatus:
    """Print what many machines say, and write it as one page.

    Args:
        order: the folder that holds them.
        folders: their results folders.
        destination: the page's file; None for none.
        as_json: print the summary of each, instead of the tables.

    Raises:
        StoreError: the page cannot be written.
        Stop: no folder can be read.
    """
    collected, damaged = side_by_side.Collected(one_order=True, order=order), 0
    first = True
    for name, folder in zip(side_by_side.names(folders), folders, strict=True):
        what = reported.read_among(name, folder)
        if what is None:
            damaged += 1
            continue
        if as_json:
            print(("[" if first else ",") + json.dumps(what.row(None), indent=2))
        first = False
        collected.add(name, what)
    if first:
        raise Stop(f"none of the {len(folders)} results folders of {order} can be read", ExitStatus.STORE)
    if as_json:
        print("]")
    machines = collected.tables()
    if not as_json:
        side_by_side.show(machines)
        print(f"Records: {order}; of one machine: freestone report {order}/NAME")
    if destination is not None:
        lacking = extras.missing()
        if lacking is not None:
            sys.stdout.flush()
            print(f"freestone: no report: {lacking}", file=sys.stderr)
            return ExitStatus.STORE
        from freestone.reports import html  # late: the figures' libraries are large

        try:
            written = html.write_machines(machines, collected.machines, destination, order)
        except html.ReportError as error:
            raise StoreError(f"{error}; {reported.WITHOUT_PAGE}") from error
        if not as_json:
            print(f"Report:  {written}")
    return ExitStatus.STORE if damaged else ExitStatus.FINE
