"""What the page says of each result."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from freestone.browse.addresses import address
from freestone.browse.listed import Listed
from freestone.browse.reports import report_of
from freestone.browse.words import going_on, progress, what, when
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
    report = report_of(place, folder)
    command = f"{tool} report {shlex.quote(each.folder)}"
    if report is not None and len(report.parts) <= len(folder.relative_to(place).parts):  # that of several places
        command = f"{tool} report {shlex.quote(str(folder.parent))}"
    elif folder.is_symlink():
        command = ""  # its report would be written where it is not served
    measured = each.rounds is None or bool(each.rounds_complete)
    wanted = measured and each.state not in ("damaged", "running") and (report is None or report.older)
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
        instead=command if wanted else "",
        go_on=going_on(each, tool) or "",
    )
