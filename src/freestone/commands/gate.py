"""``freestone gate``: whether a change stays within limits, for a CI."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from freestone.analysis import gate as gates
from freestone.analysis.score import FAULTS, PEAK_RSS, TIME
from freestone.commands import comparing, terminal
from freestone.commands.comparing import After, Before, Markdown, Subjects
from freestone.commands.status import ExitStatus, Stop
from freestone.reports import changes

_PERCENT = re.compile(r"\+?(\d+(?:\.\d+)?) ?%")


def _limit(help: str) -> Parameter:
    """-3% is no option: it is a limit that there cannot be, and answered as one."""
    return Parameter(allow_leading_hyphen=True, help=help)


def gate(
    *results: Annotated[Path, Parameter(help="Two results folders, before and after; or one.")],
    max_slowdown: Annotated[str | None, _limit("As in '3%'.")] = None,
    max_rss: Annotated[str | None, _limit("Of the peak RSS, as in '5%'.")] = None,
    max_faults: Annotated[str | None, _limit("Of the minor faults, as in '10%'.")] = None,
    strict: Annotated[
        bool, Parameter(negative="", help="Fail also where a limit is neither exceeded nor proved to be kept.")
    ] = False,
    subject: Subjects = None,
    before: Before = None,
    after: After = None,
    markdown: Markdown = None,
    json: Annotated[bool, Parameter(negative="", help="Print the verdicts as JSON instead of tables.")] = False,
) -> int:
    """Say whether a change stays within limits, by the exit status too.

    What is compared, and how, is told by freestone diff. A limit holds for each workload and for the mean over all. It
    is exceeded where even the least change that the measurements allow lies above it; where nothing changed, at most
    one gate in twenty fails.

    Examples:

        freestone gate main/results pull/results --max-slowdown 3% --max-rss 5%
        freestone gate results/20261120T131500Z-field --before old --after new --max-slowdown 3%

    Exit status: 0 no limit exceeded, 2 wrong use or nothing comparable, 5 results could not be read or the Markdown
    not written, 6 a limit exceeded, or with --strict not proved to be kept.
    """
    given = {
        TIME: ("--max-slowdown", max_slowdown),
        PEAK_RSS: ("--max-rss", max_rss),
        FAULTS: ("--max-faults", max_faults),
    }
    limits = {aspect: _fraction(option, text) for aspect, (option, text) in given.items() if text is not None}
    if not limits:
        raise Stop("a gate needs a limit, as in --max-slowdown 3% or --max-rss 5%", ExitStatus.USAGE)
    judged = gates.judge(comparing.compared(results, subject, before, after), limits)
    if markdown is not None:
        comparing.write(markdown, changes.gate_markdown(judged))
    if json:
        print(judged.model_dump_json(indent=2))
    else:
        width, colour, plain = terminal.width(), terminal.has_colour(sys.stdout), terminal.is_ascii(sys.stdout)
        print(changes.render_gate(judged, width=width, colour=colour, ascii_only=plain), end="")
    failed = judged.outcome == "exceeded" or (strict and judged.outcome == "open")
    return ExitStatus.EXCEEDED if failed else ExitStatus.FINE


def _fraction(option: str, text: str) -> float:
    found = _PERCENT.fullmatch(text.strip())
    if found is None:
        raise Stop(f"{option} takes a percentage from 0 % up, as in {option} 3%, not '{text}'", ExitStatus.USAGE)
    return float(found[1]) / 100
