"""Which trial comes next: rounds in random order, what is missing, what has been given up. Pure functions.

A round holds every configuration of every workload once and the baseline twice (the A/A comparison). The order of a
round depends on the experiment's seed and the round's number alone, so an experiment that is resumed goes on as it
would have gone on.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from freestone.experiments.statistics import median
from freestone.records.schema import Experiment, TrialRecord

DEFAULT_ROUNDS: Final = 10
MOST_ROUNDS_IN_BUDGET: Final = 50
"""With a time budget and no number of rounds: the interval shrinks with the root of the rounds, so more buys little."""

HOPELESS_AFTER: Final = 2
"""Rounds after which a configuration without a single good trial is no longer tried."""


Arm = tuple[str, str]
"""(workload, configuration), by name."""


@dataclass(frozen=True)
class Slot:
    """A place of the schedule. ``position`` counts within the round; ``repeat`` is 1 for the baseline's second run."""

    workload: str
    configuration: str
    round: int
    position: int
    repeat: int = 0


def plan_round(experiment: Experiment, number: int) -> list[Slot]:
    """Every trial of round ``number`` (from 0), in the order they are run."""
    arms = [
        (workload.name, configuration.name, repeat)
        for workload in experiment.workloads
        for configuration in experiment.configurations
        for repeat in range(2 if configuration.name == experiment.baseline else 1)
    ]
    # A string seeds by its digest: the order is the same in every process and Python.
    random.Random(f"{experiment.seed}/{number}").shuffle(arms)
    # Which of the baseline's two runs is the first is decided by the order in time.
    seen: set[Arm] = set()
    slots: list[Slot] = []
    for position, (workload, configuration, _) in enumerate(arms):
        arm = (workload, configuration)
        slots.append(Slot(workload, configuration, number, position, repeat=int(arm in seen)))
        seen.add(arm)
    return slots


def finished(records: Iterable[TrialRecord]) -> set[tuple[str, str, int, int]]:
    """The slots that have a record, whatever its status, as (workload, configuration, round, repeat)."""
    return {(record.workload, record.configuration, record.round, record.repeat) for record in records}


def given_up(records: Sequence[TrialRecord]) -> set[Arm]:
    """The (workload, configuration) pairs that had :data:`HOPELESS_AFTER` rounds and not one good trial."""
    rounds: dict[Arm, set[int]] = {}
    good: set[Arm] = set()
    for record in records:
        arm = (record.workload, record.configuration)
        rounds.setdefault(arm, set()).add(record.round)
        if record.status == "ok":
            good.add(arm)
    return {arm for arm, seen in rounds.items() if len(seen) >= HOPELESS_AFTER} - good


def missing(experiment: Experiment, number: int, records: Sequence[TrialRecord]) -> list[Slot]:
    """What is still to be run of round ``number``, in its order."""
    done, hopeless = finished(records), given_up(records)
    return [
        slot
        for slot in plan_round(experiment, number)
        if (slot.workload, slot.configuration, slot.round, slot.repeat) not in done
        and (slot.workload, slot.configuration) not in hopeless
    ]


def unfinished(experiment: Experiment, records: Sequence[TrialRecord]) -> list[str]:
    """The workloads of which anything is still to be run, in their order."""
    left = {slot.workload for number in range(experiment.rounds) for slot in missing(experiment, number, records)}
    return [workload.name for workload in experiment.workloads if workload.name in left]


def elapsed_s(record: TrialRecord) -> float:
    """Seconds from the start of a trial's program to its end, what its processes rested included."""
    return record.metrics.wall_s + record.metrics.rested_s if record.metrics else 0.0


def round_cost_s(
    experiment: Experiment, records: Sequence[TrialRecord], overhead_s: float, left_out: Collection[str] = ()
) -> float | None:
    """How long a full round takes, from the trials so far; None before the first.

    Where programs sleep after their work in the first rounds only, those of the kind of the latest round tell it.

    Args:
        overhead_s: what a trial costs beside its wall time: start, proof, writing.
        left_out: workloads that are not run.
    """
    if not records:
        return None
    idle_rounds = {workload.name: workload.idle_rounds or 0 for workload in experiment.workloads}
    latest = max(record.round for record in records)
    every: dict[Arm, list[float]] = {}
    alike: dict[Arm, list[float]] = {}
    for record in records:
        arm = (record.workload, record.configuration)
        every.setdefault(arm, []).append(elapsed_s(record))
        sleeping = idle_rounds.get(record.workload, 0)
        if (record.round < sleeping) == (latest < sleeping):
            alike.setdefault(arm, []).append(elapsed_s(record))
    typical = {arm: median(values) for arm, values in (every | alike).items()}
    hopeless = given_up(records)
    unknown = median(list(typical.values()))
    slots = [
        slot
        for slot in plan_round(experiment, 0)
        if (slot.workload, slot.configuration) not in hopeless and slot.workload not in left_out
    ]
    return sum(typical.get((slot.workload, slot.configuration), unknown) + overhead_s for slot in slots)


def fits_budget(spent_s: float, round_s: float | None, budget_s: float | None) -> bool:
    """Whether another round may begin. The first always may: a budget never leaves an experiment empty."""
    return budget_s is None or round_s is None or spent_s + round_s <= budget_s
