"""What came of a search: the finalists in rounds that did not choose them. Pure.

The table of the finalists is that of any comparison, and its intervals hold all at once. On the *front* are those that
really gain something and that no other finalist really beats in both. The best for a goal is confirmed as a winner of
``compare`` is: by held-out rounds, in either half of which stands whoever the other half would have chosen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from freestone.analysis import arms, family, statistics
from freestone.analysis.best_peer import best_of_other_rounds, held_out
from freestone.analysis.winners import WORTH_A_CHANGE
from freestone.doctor import verdict
from freestone.doctor.verdict import Tried
from freestone.records.schema import Experiment, Ratio, Summary, TrialRecord
from freestone.tuning import racing
from freestone.tuning.kept import Tuning
from freestone.tuning.racing import MEMORY, OBJECTIVES, TIME, Race


@dataclass(frozen=True)
class Conclusion:
    """What there is to choose from."""

    finalists: Sequence[Tried]
    front: Sequence[Tried]
    """By time; none where nothing was told apart from the untouched program for the better."""
    leader: Tried | None
    """The lowest for the goal of those that really help it; None where none does."""
    confirmed: bool
    """Whether held-out rounds say of the leader what all rounds say."""
    level: Sequence[str]
    """Who helps the goal too, and is not really behind the leader in it."""

    @property
    def best(self) -> Tried | None:
        """What to use for the goal."""
        return self.leader if self.confirmed else None


def conclude(tuning: Tuning, experiment: Experiment, records: Sequence[TrialRecord], summary: Summary) -> Conclusion:
    """Weigh the finalists.

    Args:
        tuning: what was asked.
        experiment: the finalists beside the untouched program.
        records: of it, and of no round of the search.
        summary: of these records.
    """
    (workload,) = experiment.workloads
    judged = verdict.judge(summary, workload, {}, tuning.goal, tuning.memory)
    race = _race(experiment, records, workload.time, tuning.memory)
    fine = [each for each in judged.tried if each.discarded is None and each.configuration in race]
    gaining = [each for each in fine if min(each.sure_time, each.sure_memory) < WORTH_A_CHANGE]
    sure = family.confidence(family.RIVALS, 2 * family.pairs(len(experiment.configurations)))
    front = [
        each
        for each in gaining
        if not any(
            racing.dominates(race, other.configuration, each.configuration, experiment.baseline, sure)
            for other in gaining
            if other is not each
        )
    ]
    # All of these are really better than the untouched program: of several, the lowest leads, as in every table.
    helped = [each for each in gaining if verdict.helps(each, tuning.goal)]
    helped = [each for each in helped if _estimated(each, tuning.goal) < WORTH_A_CHANGE]
    leader = min(helped, key=lambda each: (_estimated(each, tuning.goal), each.configuration), default=None)
    helping = [each.configuration for each in helped]
    level = [
        name
        for name in helping
        if leader is not None
        and name != leader.configuration
        and not _is_lower(race, leader.configuration, name, tuning.goal, sure)
    ]
    return Conclusion(
        finalists=judged.tried,
        front=sorted(front, key=lambda each: (_value(each.time), _value(each.memory), each.configuration)),
        leader=leader,
        confirmed=leader is not None and _is_confirmed(race, helping, experiment.baseline, tuning.goal),
        level=level,
    )


def _estimated(each: Tried, goal: str) -> float:
    """What counts for the goal, as a ratio, whether it is told apart from 1 or not."""
    ratios = {TIME: _value(each.time), MEMORY: _value(each.memory)}
    return ratios[goal] if goal in ratios else ratios[TIME] * ratios[MEMORY]


def _is_lower(race: Race, one: str, other: str, goal: str, confidence: float) -> bool:
    """Whether one really costs less of what counts for the goal than another."""
    found = statistics.within_rounds(_cost(race, one, goal), _cost(race, other, goal), _step(goal))
    return found is not None and statistics.interval(found, confidence).is_below_one


def _is_confirmed(race: Race, helping: Sequence[str], baseline: str, goal: str) -> bool:
    costs = {name: _cost(race, name, goal) for name in helping}
    chosen = best_of_other_rounds(costs)
    found = held_out(chosen, _cost(race, baseline, goal), _step(goal))
    return found is not None and statistics.interval(found, statistics.CONFIDENCE).is_below_one


def _step(goal: str) -> float:
    """The steps in which a goal's cost is counted: what is multiplied by a time comes in none."""
    return racing.STEPS.get(goal, 0.0)


def _cost(race: Race, name: str, goal: str) -> Mapping[int, float]:
    """Round -> what counts for the goal."""
    mine = race[name]
    if goal in OBJECTIVES:
        return {number: value for (_, number), value in mine.get(goal, {}).items()}
    memory = mine.get(MEMORY, {})
    return {number[1]: value * memory[number] for number, value in mine.get(TIME, {}).items() if number in memory}


def _race(experiment: Experiment, records: Sequence[TrialRecord], time: str, memory: str) -> Race:
    found: dict[str, dict[str, dict[tuple[int, int], float]]] = {}
    for (_, name), mine in arms.by_arm(arms.counted(experiment, records)).items():
        if arms.verdict(mine)[0] == "ok":
            rounds = arms.by_round(mine)
            found[name] = {
                objective: {(0, number): value for number, value in rounds.get(metric, {}).items() if value > 0}
                for objective, metric in ((TIME, time), (MEMORY, memory))
            }
    return found


def _value(ratio: Ratio | None) -> float:
    return math.inf if ratio is None else ratio.value
