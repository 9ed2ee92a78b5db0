"""``freestone compare --quick``: a minute of the usual allocators, and the answer in one sentence."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from freestone.allocators import discover
from freestone.analysis import headline
from freestone.commands import to_use
from freestone.experiments.plan import PlanError
from freestone.experiments.schedule import elapsed_s
from freestone.records.schema import Experiment, Summary, TrialRecord
from freestone.reports import advice

BUDGET_S: Final = 60.0

CANDIDATES: Final = ("glibc", "freestone", "mimalloc", "jemalloc", "tcmalloc")
"""The allocators that most people choose between: with all that are here, a minute holds too few rounds."""


def candidates() -> list[str]:
    """Names of the candidates that are here."""
    return [each.name for each in discover() if each.available and each.name in CANDIDATES]


def require_one_program(programs: int) -> None:
    """Raise PlanError if there are several programs: a sentence is about one."""
    if programs != 1:
        raise PlanError(f"--quick answers for one program, not {programs}; leave it out")


def show(experiment: Experiment, records: Sequence[TrialRecord], summary: Summary, folder: Path) -> None:
    """Print the sentence, and on standard error the command that shows the figures."""
    level = headline.level_with_best(experiment, records, summary)
    brings_malloc = to_use.brings_malloc(experiment.workloads[0])
    seconds = sum(map(elapsed_s, records))
    print(advice.sentence(experiment, summary, seconds, level, brings_malloc=brings_malloc), flush=True)
    print(f"freestone: the figures: freestone report {folder}", file=sys.stderr)
