"""The scoreboard of an experiment, printed and written. Shared by the verbs that show it."""

from __future__ import annotations

import difflib
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from freestone.commands import terminal
from freestone.commands.counting import Counting
from freestone.experiments.plan import PlanError
from freestone.records.schema import Experiment, Score
from freestone.records.store import StoreError
from freestone.records.whole import why, write_whole
from freestone.reports import scoreboard as tables

FAVOURITE = "freestone"


def subject_of(experiment: Experiment, asked: str | None) -> str:
    """Which configuration is held against the others: the one asked for, else freestone, else the baseline.

    Raises:
        PlanError: the one asked for is not measured.
    """
    names = [configuration.name for configuration in experiment.configurations]
    if asked is None:
        return FAVOURITE if FAVOURITE in names else experiment.baseline
    if asked not in names:
        near = difflib.get_close_matches(asked, names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
        raise PlanError(f"'{asked}' is not measured; {hint}")
    return asked


def text(score: Score) -> str:
    """The scoreboard as the terminal can show it."""
    width, colour, plain = terminal.width(), terminal.has_colour(sys.stdout), terminal.is_ascii(sys.stdout)
    return tables.render(score, width=width, colour=colour, ascii_only=plain)


def show(score: Score, folder: Path, *, as_json: bool, more: str = "", counts: Counting | None = None) -> None:
    """Print a score with its counts, and what else there is for people to read."""
    if as_json:
        row = {**json.loads(score.model_dump_json()), **(counts.as_json() if counts else {})}
        print(json.dumps(row, indent=2, ensure_ascii=False))
        return
    print(text(score))
    if more:
        print(more)
    if counts is not None:
        print(counts.text())
    print(f"Records: {folder}")


def document(experiment: Experiment, score: Score) -> str:
    """The scoreboard as Markdown, with the subject's ratio to every peer everywhere."""
    heading = (
        f"Scoreboard: {_count(experiment.workloads, 'workload')}, {_count(experiment.configurations, 'allocator')}"
    )
    return tables.markdown(score, heading=heading, command_line=shlex.join(experiment.command_line))


def write(documents: Sequence[str], target: Path) -> None:
    """Write scoreboards as one Markdown document.

    Raises:
        StoreError: it cannot be written.
    """
    try:
        write_whole(target, "\n".join(documents), mode=0o644)
    except OSError as error:
        raise StoreError(f"cannot write {target}: {why(error)}") from error


def _count(things: Sequence[object], what: str) -> str:
    return f"{len(things)} {what}{'' if len(things) == 1 else 's'}"
