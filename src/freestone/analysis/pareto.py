"""What is gained against the untouched program: for a goal, and on the Pareto front of time and memory. Pure.

A configuration counts only if its interval excludes no change. A gain that cannot be told from nothing is none, and a
loss likewise. On the *front* are those that really gain something and that no other really beats in both. The best for
a goal is confirmed by held-out rounds, as a winner of ``compare`` is (:mod:`freestone.analysis.rivals`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Self

from freestone.analysis import arms, family, racing, statistics
from freestone.analysis.best_peer import best_of_other_rounds, held_out
from freestone.analysis.racing import Race
from freestone.analysis.winners import WORTH_A_CHANGE
from freestone.records.schema import Cell, Experiment, Ratio, Summary, TrialRecord, Workload

Goal = Literal["time", "memory", "balanced"]
"""``balanced``: both, and neither may lose much."""

PRICE: Final = 1.05
"""For a balanced goal: the most that one of time and memory may lose if the other gains."""


@dataclass(frozen=True)
class Gain:
    """A configuration's figures against the untouched program."""

    configuration: str
    time: Ratio | None
    memory: Ratio | None
    faults: Ratio | None
    discarded: str | None = None
    """Why it has no figures: it failed, printed something else, was not in force."""

    @classmethod
    def of(cls, cell: Cell, time: str, memory: str, untrue: str | None = None) -> Self:
        """Of a cell; ``untrue`` says why its figures are none, whatever they are."""
        if cell.status != "ok" or untrue is not None:
            return cls(cell.configuration, None, None, None, untrue or cell.reason or cell.status)
        ratio = cell.ratio
        return cls(cell.configuration, ratio.get(time), ratio.get(memory), ratio.get("minor_faults"))

    @property
    def sure_time(self) -> float:
        """The ratio if it is told apart from no change; else 1."""
        return _sure(self.time)

    @property
    def sure_memory(self) -> float:
        return _sure(self.memory)

    @property
    def gains(self) -> bool:
        return min(self.sure_time, self.sure_memory) < 1

    def helps(self, goal: Goal) -> bool:
        """Whether it is really better for the goal, at no price that the goal forbids."""
        match goal:
            case "time":
                return self.sure_time < 1
            case "memory":
                return self.sure_memory < 1
            case _:
                # By the estimate: a loss that is not told apart from no change may still be one.
                return self.gains and max(_value(self.time, 1.0), _value(self.memory, 1.0)) <= PRICE

    def cost(self, goal: Goal) -> float:
        """The estimated ratio that counts for the goal, whether it is told apart from 1 or not."""
        time, memory = _value(self.time, math.inf), _value(self.memory, math.inf)
        return {"time": time, "memory": memory}.get(goal, time * memory)


@dataclass(frozen=True)
class Conclusion:
    """What there is to choose from."""

    tried: Sequence[Gain]
    front: Sequence[Gain]
    """By time; none if nothing was told apart from the untouched program for the better."""
    leader: Gain | None
    """The lowest for the goal of those that really help it; None if none does."""
    confirmed: bool
    """Whether held-out rounds confirm the leader."""
    level: Sequence[str]
    """Those that help the goal too, and are not really behind the leader in it."""
    out: Mapping[str, str]
    """Configuration that got no more rounds -> the one that is better."""

    @property
    def best(self) -> Gain | None:
        """What to use for the goal."""
        return self.leader if self.confirmed else None


def conclude(
    experiment: Experiment, records: Sequence[TrialRecord], summary: Summary, workload: Workload, goal: Goal
) -> Conclusion:
    """Weigh the configurations of an experiment in which they raced.

    Args:
        experiment: the configurations beside the untouched program, which is the baseline.
        records: its records.
        summary: of these records.
        workload: one of it.
        goal: what the best is for.
    """
    time, memory = racing.metrics(experiment, workload)
    tried = [
        Gain.of(cell, time, memory)
        for cell in summary.cells
        if cell.workload == workload.name and cell.configuration != experiment.baseline
    ]
    out = {
        name: by
        for (measured, name), by in racing.out(experiment, records).items()
        if measured == workload.name and by is not None
    }
    race, _ = racing.race_of(experiment, arms.counted(experiment, records), workload)
    gaining = [
        each
        for each in tried
        if each.configuration in race.keys() - out.keys() and min(each.sure_time, each.sure_memory) < WORTH_A_CHANGE
    ]
    sure = family.confidence(family.RIVALS, 2 * family.pairs(len(experiment.configurations)))
    front = [
        each
        for each in gaining
        if not any(
            racing.dominates(race, other.configuration, each.configuration, (time, memory), sure)
            for other in gaining
            if other is not each
        )
    ]
    costs = {each.configuration: _costs(race, each.configuration, goal, time, memory) for each in gaining}
    # All of these are really better than the untouched program: of several, the lowest leads, as in every table.
    helping = [each for each in gaining if each.helps(goal) and each.cost(goal) < WORTH_A_CHANGE]
    leader = min(helping, key=lambda each: (each.cost(goal), each.configuration), default=None)
    step = arms.step({"time": time, "memory": memory}.get(goal, time))
    confirmed = False
    level: list[str] = []
    if leader is not None:
        chosen = best_of_other_rounds({each.configuration: costs[each.configuration] for each in helping})
        found = held_out(chosen, _costs(race, experiment.baseline, goal, time, memory), step)
        confirmed = found is not None and statistics.interval(found, statistics.CONFIDENCE).is_below_one
        for each in helping:
            behind = statistics.within_rounds(costs[leader.configuration], costs[each.configuration], step)
            if each is not leader and not (behind and statistics.interval(behind, sure).is_below_one):
                level.append(each.configuration)
    front.sort(key=lambda each: (_value(each.time, math.inf), _value(each.memory, math.inf), each.configuration))
    return Conclusion(tried, front, leader, confirmed, level, out)


def _costs(race: Race, name: str, goal: Goal, time: str, memory: str) -> Mapping[int, float]:
    """Round -> what counts for the goal."""
    times, memories = race[name].get(time, {}), race[name].get(memory, {})
    if goal != "balanced":
        return times if goal == "time" else memories
    return {number: value * memories[number] for number, value in times.items() if number in memories}


def _value(ratio: Ratio | None, unknown: float) -> float:
    return unknown if ratio is None else ratio.value


def _sure(ratio: Ratio | None) -> float:
    return ratio.value if ratio is not None and ratio.different else 1.0
