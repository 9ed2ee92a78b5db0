"""Which trial comes next: what is missing of a round, what has been given up, what fits a budget. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from freestone.analysis import racing
from freestone.analysis.rounds import Arm, Slot, plan_round
from freestone.analysis.statistics import median
from freestone.records.schema import Experiment, TrialRecord, Workload

DEFAULT_ROUNDS: Final = 10
MOST_ROUNDS_IN_BUDGET: Final = 50
"""With a time budget and no number of rounds: the interval shrinks with the root of the rounds, so more buys little."""

HOPELESS_AFTER: Final = 2
"""Rounds after which a configuration without a single good trial is no longer tried."""


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


def missing(
    experiment: Experiment, number: int, records: Sequence[TrialRecord], out: Collection[Arm] = ()
) -> list[Slot]:
    """What is still to be run of round ``number``, in its order, without the arms that are ``out`` of the race."""
    done, hopeless = finished(records), given_up(records).union(out)
    return [
        slot
        for slot in plan_round(experiment, number)
        if (slot.workload, slot.configuration, slot.round, slot.repeat) not in done
        and (slot.workload, slot.configuration) not in hopeless
    ]


def unfinished(experiment: Experiment, records: Sequence[TrialRecord]) -> list[str]:
    """The workloads of which anything is still to be run, in their order."""
    out = racing.out(experiment, records)
    left = {slot.workload for number in range(experiment.rounds) for slot in missing(experiment, number, records, out)}
    return [workload.name for workload in experiment.workloads if workload.name in left]


def elapsed_s(record: TrialRecord) -> float:
    """Seconds from the start of a trial's program to its end, what its processes rested included."""
    return record.metrics.wall_s + record.metrics.rested_s if record.metrics else 0.0


@dataclass(frozen=True)
class Costs:
    """How long full rounds take, in seconds: the first ``sleeping``, with sleep after the work, and the others."""

    asleep_s: float
    awake_s: float
    sleeping: int

    def round_s(self, number: int) -> float:
        """Of round ``number``, from 0."""
        return self.asleep_s if number < self.sleeping else self.awake_s


def costs(
    experiment: Experiment,
    records: Sequence[TrialRecord],
    overhead_s: float,
    left_out: Collection[str] = (),
    out: Collection[Arm] = (),
) -> Costs | None:
    """How long rounds take, from the trials so far; None before the first.

    Args:
        overhead_s: what a trial costs beside its wall time: start, proof, writing.
        left_out: workloads that are not run.
        out: arms that get no more rounds.
    """
    if not records:
        return None
    workloads = {workload.name: workload for workload in experiment.workloads}
    work: dict[Arm, list[float]] = {}
    sleep: dict[Arm, list[float]] = {}
    for record in records:
        arm = (record.workload, record.configuration)
        slept_s = _slept_s(workloads.get(record.workload), record)
        work.setdefault(arm, []).append(elapsed_s(record) - (slept_s or 0.0))
        if slept_s is not None:
            sleep.setdefault(arm, []).append(slept_s)
    hopeless = given_up(records).union(out)
    arms = [
        (slot.workload, slot.configuration)
        for slot in plan_round(experiment, 0)
        if (slot.workload, slot.configuration) not in hopeless and slot.workload not in left_out
    ]
    awake_s = _sum_typical(arms, work) + overhead_s * len(arms)
    sleeping = max((workload.idle_rounds or 0 for workload in experiment.workloads), default=0)
    return Costs(awake_s + (_sum_typical(arms, sleep) if sleeping else 0.0), awake_s, sleeping)


def _slept_s(workload: Workload | None, record: TrialRecord) -> float | None:
    """Of a trial in a round in which alone its program sleeps, how long it did; None of any other."""
    if workload is None or workload.idle_rounds is None or record.round >= workload.idle_rounds or not record.metrics:
        return None
    return record.metrics.rested_s + min(workload.idle_s or 0, record.metrics.wall_s)


def _sum_typical(arms: Sequence[Arm], seconds: Mapping[Arm, Sequence[float]]) -> float:
    """The sum of what each takes; of those not seen yet, what the middle one of the others takes."""
    typical = {arm: median(values) for arm, values in seconds.items()}
    unknown = median(list(typical.values())) if typical else 0.0
    return sum(typical.get(arm, unknown) for arm in arms)


def fits_budget(spent_s: float, round_s: float | None, budget_s: float | None) -> bool:
    """Whether another round may begin. The first always may: a budget never leaves an experiment empty."""
    return budget_s is None or round_s is None or spent_s + round_s <= budget_s
