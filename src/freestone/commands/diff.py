"""``freestone diff``: what changed between two results, and whether that stays within limits."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from freestone.analysis import difference, gate
from freestone.analysis.comparable import NotComparable
from freestone.analysis.score import FAULTS, PEAK_RSS, TIME
from freestone.analysis.sides import Side
from freestone.commands import one_folder, terminal
from freestone.commands.status import ExitStatus, Stop
from freestone.records import store
from freestone.records.schema import Difference
from freestone.records.store import StoreError
from freestone.records.whole import why, write_whole
from freestone.reports import changes

_PERCENT = re.compile(r"\+?(\d+(?:\.\d+)?) ?%")


def _limit(help: str) -> Parameter:
    """-3% is no option: it is a limit that there cannot be, and answered as one."""
    return Parameter(allow_leading_hyphen=True, help=help)


def diff(
    *results: Annotated[Path, Parameter(help="Two results folders, before and after; or one.")],
    max_slowdown: Annotated[str | None, _limit("Largest increase of the time that is allowed, as in '3%'.")] = None,
    max_rss: Annotated[str | None, _limit("The same for the peak RSS, as in '5%'.")] = None,
    max_faults: Annotated[str | None, _limit("The same for the minor faults, as in '10%'.")] = None,
    strict: Annotated[
        bool, Parameter(negative="", help="Fail also where a limit is neither exceeded nor proved to be kept.")
    ] = False,
    subject: Annotated[
        list[str] | None,
        Parameter(
            negative="",
            help="Of two folders: the configurations to look at. Default: those that are not the same in both.",
        ),
    ] = None,
    before: Annotated[
        str | None, Parameter(help="Of one folder: the configuration that things are held against.")
    ] = None,
    after: Annotated[str | None, Parameter(help="Of one folder: the configuration to look at.")] = None,
    markdown: Annotated[Path | None, Parameter(help="Write the tables into this file as Markdown.")] = None,
    json: Annotated[bool, Parameter(negative="", help="Print the difference as JSON instead of tables.")] = False,
) -> int:
    """Say what changed between two results, or between two configurations of one; with limits, whether it is allowed.

    Two configurations of one folder are paired within rounds, which tells the smallest changes. Two folders were
    measured at different times: there, a time counts as changed by what it changed against the configurations that are
    the same in both. Only what is comparable is compared (one machine, the same command); the rest is named.

    A limit holds for each workload and for the mean over all. It is exceeded where even the least change that the
    measurements allow lies above it; where nothing changed, at most one of twenty answers is that one is exceeded.

    Examples:

        freestone diff results/20261120T131500Z-field results/20261121T090000Z-field
        freestone diff results/20261120T131500Z-field --before old --after new
        freestone diff results/20261120T131500Z-field --before old --after new --max-slowdown 3% --max-rss 5%

    Exit status: 0 compared, and no limit exceeded; 2 wrong use or nothing comparable, 5 results could not be read or
    the Markdown not written, 6 a limit exceeded, or with --strict not proved to be kept.
    """
    given = {
        TIME: ("--max-slowdown", max_slowdown),
        PEAK_RSS: ("--max-rss", max_rss),
        FAULTS: ("--max-faults", max_faults),
    }
    limits = {aspect: _fraction(option, text) for aspect, (option, text) in given.items() if text is not None}
    if strict and not limits:
        raise Stop("--strict needs a limit, as in --max-slowdown 3% or --max-rss 5%", ExitStatus.USAGE)
    found = _compared(results, subject, before, after)
    if limits:
        return _judged(found, limits, strict, markdown, as_json=json)
    if markdown is not None:
        _write(markdown, changes.markdown(found, heading="What changed"))
    if json:
        print(found.model_dump_json(indent=2))
    else:
        width, colour, plain = terminal.width(), terminal.has_colour(sys.stdout), terminal.is_ascii(sys.stdout)
        print(changes.render(found, width=width, colour=colour, ascii_only=plain), end="")
    return ExitStatus.FINE


def _judged(
    found: Difference, limits: Mapping[str, float], strict: bool, markdown: Path | None, *, as_json: bool
) -> ExitStatus:
    """Show a difference against limits; the exit status."""
    verdict = gate.judge(found, limits)
    if markdown is not None:
        _write(markdown, changes.gate_markdown(verdict))
    if as_json:
        print(verdict.model_dump_json(indent=2))
    else:
        width, colour, plain = terminal.width(), terminal.has_colour(sys.stdout), terminal.is_ascii(sys.stdout)
        print(changes.render_gate(verdict, width=width, colour=colour, ascii_only=plain), end="")
    failed = verdict.outcome == "exceeded" or (strict and verdict.outcome == "open")
    return ExitStatus.EXCEEDED if failed else ExitStatus.FINE


def _fraction(option: str, text: str) -> float:
    found = _PERCENT.fullmatch(text.strip())
    if found is None:
        raise Stop(f"{option} takes a percentage from 0 % up, as in {option} 3%, not '{text}'", ExitStatus.USAGE)
    return float(found[1]) / 100


def _compared(
    results: tuple[Path, ...], subjects: list[str] | None, before: str | None, after: str | None
) -> Difference:
    """The difference that was asked for.

    Raises:
        Stop: wrong use, results that cannot be read, or that must not be compared.
    """
    names = [name for given in subjects or [] for name in given.split(",") if name]
    inside = before is not None or after is not None
    if len(results) not in (1, 2):
        raise Stop("give two results folders, before and after, or one with --before and --after", ExitStatus.USAGE)
    if inside and (before is None or after is None or len(results) == 2):
        raise Stop("--before and --after go together, with one results folder", ExitStatus.USAGE)
    if not inside and len(results) == 1:
        raise Stop("one results folder is compared with --before and --after, two configurations", ExitStatus.USAGE)
    if inside and names:
        raise Stop("--subject is for two results folders", ExitStatus.USAGE)
    try:
        sides = [_side(folder) for folder in results]
        if before is not None and after is not None:
            return difference.within(sides[0], before, after)
        return difference.between(sides[0], sides[1], names)
    except NotComparable as error:
        raise Stop(str(error), ExitStatus.USAGE) from error
    except StoreError as error:
        raise Stop(str(error), ExitStatus.STORE) from error


def _write(target: Path, text: str) -> None:
    try:
        write_whole(target, text, mode=0o644)
    except OSError as error:
        raise Stop(f"cannot write {target}: {why(error)}", ExitStatus.STORE) from error


def _side(folder: Path) -> Side:
    experiment, reading = store.read_experiment(one_folder.required(folder)), store.read_trials(folder)
    damage = store.damage_line(folder, reading.damage)
    if damage:
        print(f"freestone: {damage}", file=sys.stderr)
    return Side(experiment, reading.records)
