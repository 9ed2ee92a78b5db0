"""``freestone diff``: what changed between two results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from freestone.commands import comparing, terminal
from freestone.commands.comparing import After, Before, Markdown, Subjects
from freestone.commands.status import ExitStatus
from freestone.reports import changes


def diff(
    *results: Annotated[Path, Parameter(help="Two results folders, before and after; or one.")],
    subject: Subjects = None,
    before: Before = None,
    after: After = None,
    markdown: Markdown = None,
    json: Annotated[bool, Parameter(negative="", help="Print the difference as JSON instead of tables.")] = False,
) -> int:
    """Say what changed between two results, or between two configurations of one.

    Two configurations of one folder are paired within rounds, which tells the smallest changes. Two folders were
    measured at different times: there, a time counts as changed by what it changed against the configurations that are
    the same in both. Only what is comparable is compared (one machine, the same command); the rest is named.

    Examples:

        freestone diff results/20261120T131500Z-field results/20261121T090000Z-field
        freestone diff results/20261120T131500Z-field --before old --after new

    Exit status: 0 compared, 2 wrong use or nothing comparable, 5 results could not be read or the Markdown not written.
    """
    found = comparing.compared(results, subject, before, after)
    if markdown is not None:
        comparing.write(markdown, changes.markdown(found, heading="What changed"))
    if json:
        print(found.model_dump_json(indent=2))
    else:
        width, colour, plain = terminal.width(), terminal.has_colour(sys.stdout), terminal.is_ascii(sys.stdout)
        print(changes.render(found, width=width, colour=colour, ascii_only=plain), end="")
    return ExitStatus.FINE
