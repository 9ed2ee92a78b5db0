"""What the page says of each result."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from freestone.browse.addresses import address
from freestone.browse.listed import Listed
from freestone.browse.reports import is_of_several, report_in
from freestone.browse.words import going_on, progress, what, when
from freestone.records import store
from freestone.reports.all_results import Row


def rows(place: Path, found: Iterable[Listed], tool: str) -> list[Row]:
    """A row for each result, in their order. Asks which reports there are now.

    Args:
        place: the folder of all results.
        tool: what starts freestone.
    """
    return [_row(place, each, tool) for each in found]


def _row(place: Path, each: Listed, tool: str) -> Row:
    folder = Path(each.folder)
    trials = folder / store.TRIALS_FILE
    several = is_of_several(place, folder)
    own = report_in(place, folder, trials)
    of_all = report_in(place, folder.parent, trials) if several else None
    report = own or of_all
    wanted = folder.parent if several and (of_all is None or of_all.older) else folder
    measured = each.rounds is None or bool(each.rounds_complete)
    lacks = report is None or report.older or (several and (of_all is None or of_all.older))
    if not lacks or not measured or each.state in ("damaged", "running") or wanted.is_symlink():
        command = ""
    else:
        command = f"{tool} report {shlex.quote(str(wanted))}"
    return Row(
        name=str(folder.relative_to(place)) if folder != place else each.name,
        when=when(each.created_at) if each.created_at else "",
        state=each.state,
        progress="" if each.state == "damaged" else progress(each),
        what="" if each.verb is None else what(each),
        configurations=", ".join(each.configurations or []),
        machine=each.machine or "",
        verdict=each.headline or "",
        reason=each.reason or "",
        address="" if report is None else address(report.parts),
        of_all="" if of_all is None or own is None else address(of_all.parts),
        instead=command,
        is_older=report is not None and report.older,
        go_on=going_on(each, tool) or "",
    )
