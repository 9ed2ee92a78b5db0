"""The slots of a round, in random order. Pure functions.

A round holds every configuration of every workload once and the baseline twice (the A/A comparison). The order of a
round depends on the experiment's seed and the round's number alone, so an experiment that is resumed goes on as it
would have gone on.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from freestone.records.schema import Experiment

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
