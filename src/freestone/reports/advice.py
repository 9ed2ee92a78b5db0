"""What to run a program under, in one sentence. Pure."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence

from freestone.records.schema import Experiment, Summary
from freestone.reports import deployment, quantities, recommendation

ENOUGH_ROUNDS = 10
"""Rounds that show a difference of some per cent."""


def sentence(
    experiment: Experiment,
    summary: Summary,
    seconds: float,
    level: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    *,
    brings_malloc: bool = False,
) -> str:
    """The advice for an experiment of one workload.

    Args:
        experiment: what was compared.
        summary: of its records.
        seconds: how long it was measured.
        level: workload -> aspect -> who cannot be told from the best there; they are named beside it.
        brings_malloc: whether the program is linked against an allocator, so that the baseline is not what it has.
    """
    (workload,) = experiment.workloads
    best = summary.best.get(workload.name, {})
    baseline = summary.baseline
    for aspect in ("time", "peak memory"):
        if aspect in best:
            winner = next(each for each in experiment.configurations if each.name == best[aspect])
            others = (level or {}).get(workload.name, {}).get(aspect, [])
            choice = recommendation.choice(workload, summary, aspect, winner.name, others)
            return f"Run it under {choice}: {deployment.run_line(workload, winner)}"
    measured = [cell for cell in summary.cells if cell.status == "ok"]
    others = [cell.configuration for cell in measured if cell.configuration != baseline]
    if not others:
        return summary.headline
    if not any(quantities.is_known(ratio) for cell in measured for ratio in cell.ratio.values()):
        return (
            f"There is no telling yet: {_rounds(summary.rounds_complete)} of {len(measured)} allocators in "
            f"{seconds:.0f} s are too few; try: {_longer(experiment, summary, seconds)}"
        )
    coarse = recommendation.coarseness(summary, [workload.name])
    beside = f"; {coarse}" if coarse else ""
    if brings_malloc:
        return (
            f"Leave it as it is: beside {baseline} {_none_of(others)} really better, and the malloc that the program "
            f"brings was not measured{beside}."
        )
    return (
        f"Stay with {baseline}: in {_rounds(summary.rounds_complete)} {_none_of(others)} really better "
        f"in time, nor in peak memory at no more time{beside}."
    )


def _none_of(names: Sequence[str]) -> str:
    """``jemalloc was not``, ``none of jemalloc and tcmalloc was``."""
    return f"{names[0]} was not" if len(names) == 1 else f"none of {', '.join(names[:-1])} and {names[-1]} was"


def _longer(experiment: Experiment, summary: Summary, seconds: float) -> str:
    """The command that would probably tell: the one that was typed, with another budget."""
    budget = math.ceil(seconds / max(1, summary.rounds_complete) * ENOUGH_ROUNDS / 60) * 60
    words = experiment.command_line[2:]
    end = words.index("--") if "--" in words else len(words)
    options, before = [], ""
    for word in words[:end]:
        if not re.fullmatch(r"--time[-_]budget(=.*)?", word) and not re.fullmatch(r"--time[-_]budget", before):
            options.append(word)
        before = word
    return shlex.join(["freestone", "compare", "--time-budget", str(budget), *options, *words[end:]])


def _rounds(number: int) -> str:
    return f"{number:,} round{'' if number == 1 else 's'}"
