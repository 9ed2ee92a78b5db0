"""What to run a program under, in one sentence. Pure."""

from __future__ import annotations

import math
import shlex

from freestone.records.schema import Experiment, Summary, Workload
from freestone.reports import deployment, quantities

ENOUGH_ROUNDS = 10
"""Rounds that show a difference of some per cent."""


def sentence(experiment: Experiment, summary: Summary, seconds: float) -> str:
    """The advice for an experiment of one workload.

    Args:
        experiment: what was compared.
        summary: of its records.
        seconds: how long it was measured.
    """
    (workload,) = experiment.workloads
    best = summary.best.get(workload.name, {})
    baseline = summary.baseline
    for aspect in ("time", "peak memory"):
        if aspect in best:
            cell = next(each for each in summary.cells if each.configuration == best[aspect])
            run = shlex.join(["freestone", "run", "-a", cell.configuration, "--", *workload.command])
            return f"Run it under {cell.configuration} ({deployment.price(workload, cell, baseline)}): {run}"
    measured = [cell for cell in summary.cells if cell.status == "ok"]
    others = [cell.configuration for cell in measured if cell.configuration != baseline]
    if not others:
        return summary.headline
    if not any(quantities.is_known(ratio) for cell in measured for ratio in cell.ratio.values()):
        return (
            f"There is no telling yet: {_rounds(summary.rounds_complete)} of {len(measured)} allocators in "
            f"{seconds:.0f} s are too few; try: {_longer(workload, summary, seconds)}"
        )
    return (
        f"Stay with {baseline}: in {_rounds(summary.rounds_complete)} none of {', '.join(others)} was really better "
        "in time, nor in peak memory at no more time."
    )


def _longer(workload: Workload, summary: Summary, seconds: float) -> str:
    """The command that would probably tell."""
    budget = math.ceil(seconds / max(1, summary.rounds_complete) * ENOUGH_ROUNDS / 60) * 60
    return shlex.join(["freestone", "advise", "--time-budget", str(budget), "--", *workload.command])


def _rounds(number: int) -> str:
    return f"{number} round{'' if number == 1 else 's'}"
