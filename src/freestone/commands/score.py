"""``freestone score``: the scoreboard of a results folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from freestone.analysis import score as scored
from freestone.commands import scoring
from freestone.commands.status import ExitStatus, Stop
from freestone.experiments.plan import PlanError
from freestone.records import store
from freestone.records.store import StoreError


def score(
    results: Annotated[Path, Parameter(help="A results folder of freestone bench.")],
    /,
    *,
    subject: Annotated[
        str | None,
        Parameter(help="The allocator to hold against the best of the others. Default: freestone, or the baseline."),
    ] = None,
    markdown: Annotated[Path | None, Parameter(help="Write the scoreboard into this file as Markdown.")] = None,
    json: Annotated[bool, Parameter(negative="", help="Print the score as JSON instead of tables.")] = False,
) -> int:
    """Show the scoreboard of a results folder: one allocator against the best of the others, and the whole field.

    It is computed again from the records, so another allocator can be held against the rest at any time, and it can be
    looked at while the experiment goes on.

    Examples:

        freestone score results/20261120T131500Z-field
        freestone score results/20261120T131500Z-field --subject mimalloc --markdown mimalloc.md

    Exit status: 0 fine, 2 wrong use, 5 results could not be read or the Markdown not written.
    """
    try:
        experiment, reading = store.read_experiment(results), store.read_trials(results)
        damage = store.damage_line(results, reading.damage)
        if damage:
            print(f"freestone: {damage}", file=sys.stderr)
        board = scored(experiment, reading.records, scoring.subject_of(experiment, subject))
        if markdown is not None:
            scoring.write_markdown(experiment, board, markdown)
        scoring.show(board, results, as_json=json)
    except PlanError as error:
        raise Stop(str(error), ExitStatus.USAGE) from error
    except StoreError as error:
        raise Stop(str(error), ExitStatus.STORE) from error
    return ExitStatus.FINE
