"""What a comparison ends with: which allocator to use, and how."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence

from freestone.analysis import headline
from freestone.commands import program
from freestone.commands.status import Stop
from freestone.records.schema import Experiment, Summary, TrialRecord, Workload
from freestone.reports import recommendation
from freestone.reports.recommendation import Recommendation


def recommended(experiment: Experiment, records: Sequence[TrialRecord], summary: Summary) -> list[Recommendation]:
    """What a terminal, a page and an export say below the tables. None where too few rounds tell nothing."""
    if len(experiment.workloads) > 1 and recommendation.is_of_suites(experiment):
        return []  # what would be asked of hundreds of programs is not looked up
    return recommendation.recommendations(
        experiment,
        summary,
        bringing_malloc=[each.name for each in experiment.workloads if brings_malloc(each)],
        level=headline.level_with_best(experiment, records, summary),
    )


def printed(told: Sequence[Recommendation], width: int) -> list[str]:
    """The lines for a terminal of so many columns: what is to be copied stays in one line, however narrow it is."""
    return [
        line
        for each in told
        for line in (*textwrap.wrap(each.sentence, width, break_long_words=False), *each.lines, "")
    ]


def brings_malloc(workload: Workload) -> bool:
    """Whether the program, if it is here, is linked against an allocator."""
    environment = {**os.environ, **workload.environment}
    try:
        executable = program.require(workload.command, environment, workload.directory or ".")
    except Stop:
        return False  # a cleanup may have taken it away, or it was measured on another machine
    return program.brings_malloc(executable)
