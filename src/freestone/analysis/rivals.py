"""Whether who is lowest really is: against each rival, and in rounds that did not choose it. Pure functions.

Whoever leads a table leads it in part by luck. So a winner is called real only where two things hold: its interval, one
of all those of the table, leaves out 1; and so does that of its ratio in *held-out* rounds: in either half of them
stands whoever the other half would have chosen (:func:`freestone.analysis.best_peer.best_of_other_rounds`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from freestone.analysis import arms, family, statistics
from freestone.analysis.arms import ByRound
from freestone.analysis.best_peer import best_of_other_rounds, held_out
from freestone.analysis.rounds import Arm
from freestone.analysis.statistics import Interval
from freestone.records.schema import Experiment

CROWNS: Final = 2
"""Quantities in which a winner is named: time and peak memory."""


class Rivals:
    """The rounds of an experiment, and who beats whom in them."""

    def __init__(self, experiment: Experiment, rounds: Mapping[Arm, ByRound]) -> None:
        self._baseline = experiment.baseline
        self._rounds = rounds
        series = Counter(workload.series for workload in experiment.workloads if workload.series is not None)
        points = max(series.values(), default=1)
        pairs = family.pairs(len(experiment.configurations))
        self._sure = family.confidence(family.RIVALS, CROWNS * pairs * points)

    def beats(self, workload: str, metric: str, one: str, other: str) -> bool:
        """Whether one configuration is really lower than another, beside all other pairs that could be asked about."""
        mine, theirs = self._of(workload, one, metric), self._of(workload, other, metric)
        found = statistics.within_rounds(mine, theirs, arms.step(metric))
        return found is not None and statistics.interval(found, self._sure).is_below_one

    def confirms(self, workload: str, metric: str, names: Sequence[str]) -> bool:
        """Whether the lowest of some is lower than the baseline in rounds that did not choose it."""
        found = self.held_out(workload, metric, names)
        return found is not None and found.is_below_one

    def held_out(self, workload: str, metric: str, names: Sequence[str]) -> Interval | None:
        """The ratio to the baseline of the lowest of some: in either half of the rounds whom the other half chooses."""
        chosen = best_of_other_rounds({name: self._of(workload, name, metric) for name in names})
        found = held_out(chosen, self._of(workload, self._baseline, metric), arms.step(metric))
        return None if found is None else statistics.interval(found, statistics.CONFIDENCE)

    def _of(self, workload: str, configuration: str, metric: str) -> Mapping[int, float]:
        return self._rounds.get((workload, configuration), {}).get(metric, {})
