"""One of two results that are held against each other: its records, and its rounds by arm and metric. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from freestone.analysis import arms, same_work
from freestone.analysis.rounds import Arm
from freestone.records.schema import Experiment, TrialRecord

Rounds = Mapping[int, float]


@dataclass(frozen=True)
class Side:
    """One of two results."""

    experiment: Experiment
    records: Sequence[TrialRecord]


class Figures:
    """The rounds of one side, by arm and metric."""

    def __init__(self, side: Side) -> None:
        self._by_arm: dict[Arm, dict[str, dict[int, float]]] = {}
        self.absent: dict[Arm, str] = {}
        self._said: dict[Arm, str | None] = {}
        by_arm = arms.by_arm(arms.counted(side.experiment, side.records))
        for workload in side.experiment.workloads:
            for configuration in side.experiment.configurations:
                arm = (workload.name, configuration.name)
                mine = by_arm.get(arm, [])
                status, reason = arms.verdict(mine)
                if status == "ok":
                    self._by_arm[arm] = arms.by_round(mine)
                    self._said[arm] = same_work.said(arms.good(mine))
                else:
                    self.absent[arm] = "not measured" if status == "unmeasured" else reason or status

    @property
    def measured(self) -> list[Arm]:
        """The arms that have a result."""
        return list(self._by_arm)

    def has(self, workload: str, configuration: str) -> bool:
        """Whether there is a result."""
        return (workload, configuration) in self._by_arm

    def said_apart(self, workload: str, one: str, figures: Figures, other: str) -> bool:
        """Whether the output of one configuration, and that of another, agree with themselves and not with each other.

        Args:
            figures: those that hold the other one.
        """
        said = (self._said.get((workload, one)), figures._said.get((workload, other)))
        return None not in said and said[0] != said[1]

    def rounds(self, workload: str, configuration: str, metric: str) -> Rounds:
        """Round -> value; nothing where a value has no logarithm."""
        found = self._by_arm.get((workload, configuration), {}).get(metric, {})
        return found if all(0 < value < math.inf for value in found.values()) else {}
