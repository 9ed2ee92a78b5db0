"""The lines that say how the winner of a comparison is put to use."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence

from freestone.analysis import headline
from freestone.commands import program
from freestone.commands.status import Stop
from freestone.records.schema import Experiment, Summary, TrialRecord, Workload
from freestone.reports import deployment


def lines(experiment: Experiment, records: Sequence[TrialRecord], summary: Summary) -> list[str]:
    """What a terminal and a page say below the table: a sentence, then lines to be copied. None where there is no one
    answer: several workloads, or too few rounds."""
    if len(experiment.workloads) != 1:
        return []
    return deployment.told(
        experiment,
        summary,
        brings_malloc=brings_malloc(experiment.workloads[0]),
        level=headline.level_with_best(experiment, records, summary),
    )


def printed(told: Sequence[str], width: int) -> list[str]:
    """The lines for a terminal of so many columns: what is to be copied stays in one line, however narrow it is."""
    return [*textwrap.wrap(told[0], width, break_long_words=False), *told[1:], ""] if told else []


def brings_malloc(workload: Workload) -> bool:
    """Whether the program, if it is here, is linked against an allocator."""
    environment = {**os.environ, **workload.environment}
    try:
        executable = program.require(workload.command, environment, workload.directory or ".")
    except Stop:
        return False  # a cleanup may have taken it away, or it was measured on another machine
    return program.brings_malloc(executable)
