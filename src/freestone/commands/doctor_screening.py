"""Runs each remedy once where the rounds have room for few, so that these are for the most promising."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from freestone.analysis.pareto import Goal
from freestone.commands.status import ExitStatus, Stop
from freestone.commands.terminal import say
from freestone.doctor.conditions import Conditions
from freestone.doctor.observations import Cost
from freestone.doctor.remedies import Remedy
from freestone.doctor.screening import ONE_RUN, Once, chosen
from freestone.experiments.interruption import Interruption, TrialBrokenOff
from freestone.native import NativePartMissing
from freestone.records.schema import Configuration, TrialRecord, Workload
from freestone.trials import Identity, LauncherBroken, permissions, run_trial

SHARE = 0.5
"""Of the time budget, and beside it: for so long remedies run once at most."""

LONG = 4.0
"""A run is broken off once it takes so many times as long as the program as it is, and a second."""


def runs_fitting(budget_s: float, trial_s: float) -> int:
    """How many remedies can run once.

    Args:
        budget_s: the time budget for the rounds.
        trial_s: what a run takes, with its start and proof.
    """
    return int(SHARE * budget_s / trial_s)


def screened(
    workload: Workload,
    cost: Cost,
    candidates: Sequence[tuple[Configuration, Remedy]],
    goal: Goal,
    memory: str,
    most: int,
) -> tuple[list[Remedy], list[tuple[Remedy, str]]]:
    """Run each candidate once, and choose among them.

    Args:
        workload: the program; no server.
        cost: what it takes as it is.
        candidates: each remedy as it is run, the likeliest first.
        goal: what the cure is for.
        memory: the metric that is the program's memory.
        most: how many to choose.

    Returns:
        The remedies for the rounds, the most promising first; and the others, each with what its run took.

    Raises:
        Stop: it was interrupted, or the lab's own parts do not work.
    """
    say(f"running {len(candidates)} remedies once each: the time budget has room for rounds with {most}")
    once, broken = _runs(workload, cost, candidates, memory)
    here = {"peak_rss_kib": cost.peak_rss_kib, "end_rss_kib": cost.end_rss_kib}
    taken = chosen(once, Once(cost.wall_s, here.get(memory)), goal, most)
    others = [
        (each, broken[each] if each in broken else ONE_RUN + _figures(once[each]))
        for _, each in candidates
        if each not in taken
    ]
    return taken, others


def _runs(
    workload: Workload, cost: Cost, candidates: Sequence[tuple[Configuration, Remedy]], memory: str
) -> tuple[dict[Remedy, Once], dict[Remedy, str]]:
    """What one run of each took, and why others have none."""
    once: dict[Remedy, Once] = {}
    broken: dict[Remedy, str] = {}
    limit_s = LONG * cost.wall_s + 1.0
    with (
        tempfile.TemporaryDirectory(prefix=f"freestone-{os.getpid()}-") as scratch,
        Conditions() as made,
        Interruption() as stop,
    ):
        Path(scratch).chmod(0o711)
        for number, (configuration, remedy) in enumerate(candidates):
            try:
                with stop.breakable(), made.around(configuration):
                    record = run_trial(
                        workload,
                        configuration,
                        identity=Identity("doctor", round=number),
                        timeout_s=limit_s,
                        scratch=Path(scratch),
                    )
            except TrialBrokenOff as error:
                status = 128 + stop.signal if stop.signal else ExitStatus.INTERRUPTED
                raise Stop("interrupted before the first round; what was seen is kept", status) from error
            except (LauncherBroken, NativePartMissing) as error:
                raise Stop(str(error), ExitStatus.NOTHING_MEASURED) from error
            why = _broken(record, limit_s)
            if why is not None:
                broken[remedy] = why
            elif record.metrics is not None:
                figures: Mapping[str, int | None] = record.metrics.model_dump()
                once[remedy] = Once(record.metrics.wall_s, figures[memory])
        for line in made.put_back:
            say(line)
    return once, broken


def _broken(record: TrialRecord, limit_s: float) -> str | None:
    """Why a run tells nothing of its remedy; None where it does. Without a census no single run is proved."""
    if record.status == "timeout":
        return f"one run of it was broken off after {limit_s:.0f} s"
    unproved = record.status == "invalid" and not permissions().perf
    if record.metrics is not None and (record.status == "ok" or unproved):
        return None
    return f"one run of it is no result: {record.reason or record.status}"


def _figures(run: Once) -> str:
    memory = "" if run.memory_kib is None else f" and {run.memory_kib / 1024:,.0f} MiB"
    return f"{run.wall_s:.2f} s{memory}"
