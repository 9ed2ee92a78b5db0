"""Which configurations of an experiment get more rounds, and which are out: racing with intervals. Pure.

A figure is only ever held against others of its own round, so that drift is in no ratio.

A configuration is *out* if another one is really better in time or memory, and really no more than :data:`SLACK`
worse in the other. "Really" is the word of its interval. The interval is so wide that a configuration to which that
does not apply is put out in at most 5 of 100 experiments, however often it is looked at and however many rivals it
has. The 5 % are dealt out to the rivals, and the n-th look has one part in ``n (n + 1)`` of a rival's share, which adds
up to one over all looks.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from freestone.analysis import arms, statistics
from freestone.analysis.rounds import Arm, plan_round
from freestone.analysis.statistics import CONFIDENCE, Interval
from freestone.analysis.winners import MEMORY
from freestone.records.schema import Experiment, TrialRecord, Workload

Rounds = Mapping[int, float]
"""Round -> a figure above 0; less is better."""

Figures = Mapping[str, Rounds]
"""Metric -> its rounds."""

Race = Mapping[str, Figures]
"""Configuration -> its figures; the untouched program is one of them."""

LOOK_EVERY: Final = 4
"""Rounds between two looks: the fewest that have an interval, so that a clear loser is out as soon as it can be."""

SLACK: Final = 1.01
"""A figure not worse by more than this factor is as good: a thousandth of the memory is worth no slower program."""


def certainty(looks: int, rivals: int) -> float:
    """The confidence of an interval by which a configuration is put out at its n-th look, n from 1 on."""
    return 1 - (1 - CONFIDENCE) / (max(1, rivals) * looks * (looks + 1))


def metrics(experiment: Experiment, workload: Workload) -> tuple[str, str]:
    """The metrics of time and of memory in which the configurations of a workload race."""
    return workload.time, experiment.racing or MEMORY


def dominates(race: Race, one: str, other: str, objectives: Sequence[str], confidence: float) -> bool:
    """Whether one is really better in one objective, and really no more than :data:`SLACK` worse in the others."""
    ratios = [ratio(race, each, one, other, confidence) for each in objectives]
    known = [each for each in ratios if each is not None and each.known]
    return (
        len(known) == len(ratios) and any(each.high < 1 for each in known) and all(each.high < SLACK for each in known)
    )


def ratio(race: Race, objective: str, one: str, other: str, confidence: float = CONFIDENCE) -> Interval | None:
    """The ratio ``one / other`` within the rounds that both have; None if nothing can be said."""
    mine, theirs = (race[name].get(objective, {}) for name in (one, other))
    found = statistics.within_rounds(mine, theirs, arms.step(objective))
    return None if found is None else statistics.interval(found, confidence)


def put_out(
    race: Race, baseline: str, objectives: Sequence[str], looks: int, out: Collection[str] = ()
) -> dict[str, str]:
    """Each configuration that is out by now -> the one that is better.

    Args:
        race: the figures so far.
        baseline: the untouched program, which is never out.
        looks: how often the race was looked at, this time included.
        out: those that were out before; their figures still count against others.
    """

    def cost(name: str) -> float:
        ratios = [ratio(race, each, name, baseline) for each in objectives]
        return math.prod(math.inf if each is None else each.value for each in ratios)

    # The best first, so that the one that is named is worth naming.
    rivals = sorted(race, key=lambda each: (cost(each), each))
    sure = certainty(looks, len(race) - 1)
    found: dict[str, str] = {}
    for name in race:
        if name != baseline and name not in out:
            better = (each for each in rivals if each != name and dominates(race, each, name, objectives, sure))
            beaten_by = next(better, None)
            if beaten_by is not None:
                found[name] = beaten_by
    return found


def out(experiment: Experiment, records: Sequence[TrialRecord]) -> dict[Arm, str | None]:
    """Each (workload, configuration) that gets no more rounds -> the one that is better; None if its trials failed.

    Every :data:`LOOK_EVERY` whole rounds are looked at in turn, so that an experiment that goes on after an end comes
    to the same answer. Where no configuration is left beside the untouched program, that one is out too.
    """
    if experiment.racing is None:
        return {}
    counted = arms.counted(experiment, records)
    have = {(each.workload, each.configuration, each.round, each.repeat) for each in counted}
    hopeless = {arm for arm, mine in arms.by_arm(counted).items() if not arms.good(mine)}
    found: dict[Arm, str | None] = {}
    for looks in range(1, 1 + experiment.rounds // LOOK_EVERY):
        end = looks * LOOK_EVERY
        slots = [slot for number in range(end - LOOK_EVERY, end) for slot in plan_round(experiment, number)]
        if any(
            (slot.workload, slot.configuration, slot.round, slot.repeat) not in have
            and (slot.workload, slot.configuration) not in found.keys() | hopeless
            for slot in slots
        ):
            break
        seen = [each for each in counted if each.round < end]
        for workload in experiment.workloads:
            found |= _look(experiment, workload, seen, looks, found)
    return found


def race_of(experiment: Experiment, records: Sequence[TrialRecord], workload: Workload) -> tuple[Race, list[str]]:
    """The figures of the configurations that are fit to be compared; and the names of those that are not."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    failed = []
    for (measured, name), mine in arms.by_arm(records).items():
        if measured != workload.name:
            continue
        if arms.verdict(mine)[0] != "ok":
            failed.append(name)
            continue
        rounds = arms.by_round(mine)
        found[name] = {
            metric: {number: value for number, value in rounds.get(metric, {}).items() if value > 0}
            for metric in metrics(experiment, workload)
        }
    return found, failed


def _look(
    experiment: Experiment,
    workload: Workload,
    records: Sequence[TrialRecord],
    looks: int,
    before: Mapping[Arm, str | None],
) -> dict[Arm, str | None]:
    race, failed = race_of(experiment, records, workload)
    gone = {name for measured, name in before if measured == workload.name}
    found: dict[str, str | None] = dict.fromkeys((name for name in failed if name not in gone), None)
    if experiment.baseline in race:
        found |= put_out(race, experiment.baseline, metrics(experiment, workload), looks, gone)
    if not race.keys() - {experiment.baseline} - gone - found.keys() or experiment.baseline not in race:
        found = dict.fromkeys((each.name for each in experiment.configurations if each.name not in gone), None) | found
    return {(workload.name, name): by for name, by in found.items()}
