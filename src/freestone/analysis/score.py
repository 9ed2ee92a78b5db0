"""What an experiment of many workloads says as a whole: records in, scoreboard out. Pure functions.

Two figures, which answer two questions. The *field*: how far is each configuration from the best of all, workload by
workload? The *subject* against its best peer: what does whoever already chose the best allocator for each workload
gain or lose? The best peer is chosen by its figure in the same records, so chance favours it: the ratio is, if
anything, too high. Beside it stands the ratio to the peer that was best in the other half of the rounds (*held out*),
which is, if anything, too low: of the means, a difference is called one where both say so. All intervals of a
scoreboard hold at once (:mod:`freestone.analysis.family`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from freestone.analysis import arms, family, statistics
from freestone.analysis.best_peer import best_of_other_rounds, held_out
from freestone.analysis.field import standings
from freestone.analysis.rounds import Arm
from freestone.analysis.statistics import FEWEST_PAIRS, Estimate
from freestone.records.schema import (
    FIGURE,
    Aspect,
    Experiment,
    LeftOut,
    Ratio,
    Score,
    ScoreRow,
    TrialRecord,
    Workload,
)

TIME = "time"
PEAK_RSS = "peak RSS"
FAULTS = "minor faults"
LEAN_FAULTS = "minor faults, lean"
IDLE_RSS = "RSS after idle"

ASPECTS = 5
"""How many there are: what a scoreboard claims at once is shared among so many."""

METRICS = {PEAK_RSS: "peak_rss_kib", FAULTS: "minor_faults", IDLE_RSS: f"{FIGURE}rss_kib_idle"}
"""Aspect -> metric, but for time, which is the workload's own."""

LEAN_WITHIN = 1.10
"""Where the peer with the fewest faults has more than this share of the leanest peer's peak RSS, it buys its calm with
memory; ``minor faults, lean`` leaves those workloads out."""

Rounds = dict[int, float]
Figures = dict[Arm, dict[str, Rounds]]
"""(workload, configuration) -> metric -> round -> value, of the arms that count."""


def score(experiment: Experiment, records: Iterable[TrialRecord], subject: str) -> Score:
    """The scoreboard of an experiment.

    Args:
        subject: the configuration that is held against the best of the others; one of the experiment's.
    """
    own = arms.counted(experiment, records)
    by_arm = arms.by_arm(own)
    figures = {arm: arms.by_round(mine) for arm, mine in by_arm.items() if arms.verdict(mine)[0] == "ok"}
    board = _Board(experiment, subject, figures)
    aspects = [board.aspect(TIME), board.aspect(PEAK_RSS), board.aspect(FAULTS)]
    lean = [row.workload for row in aspects[2].rows if board.is_lean(row, aspects[1].rows)]
    aspects += [board.aspect(LEAN_FAULTS, lean), board.aspect(IDLE_RSS)]
    return Score(
        experiment=experiment.id,
        subject=subject,
        rounds_complete=arms.complete_rounds(experiment, own),
        aspects=[aspect for aspect in aspects if aspect.rows],
        left_out=_left_out(experiment, by_arm),
    )


class _Board:
    """The figures of one experiment, and the questions asked of them."""

    def __init__(
        self,
        experiment: Experiment,
        subject: str,
        figures: Figures,
    ) -> None:
        self.experiment = experiment
        self.subject = subject
        self.figures = figures
        self.names = [configuration.name for configuration in experiment.configurations]
        self.workloads = {workload.name: workload for workload in experiment.workloads}

    def aspect(self, name: str, only: Sequence[str] | None = None) -> Aspect:
        """One aspect over all workloads that have it, or over those named."""
        held = [
            one
            for workload in self.experiment.workloads
            if only is None or workload.name in only
            if (one := self._held(workload, metric_of(name, workload))) is not None
        ]
        rows = [self._row(one) for one in held]
        counted = [one for one in held if one.workload.counted and one.ratio is not None]
        ratio, held_out_ratio = _mean(counted)
        return Aspect(
            name=name,
            rows=rows,
            field=standings({row.workload: row.values for row in rows if row.counted}),
            mean=ratio,
            held_out=held_out_ratio,
            worst=max(
                (row for row in rows if row.counted and row.ratio is not None),
                key=lambda row: row.ratio.value if row.ratio else 0.0,
                default=None,
            ),
        )

    def is_lean(self, row: ScoreRow, memory: Sequence[ScoreRow]) -> bool:
        """Whether the calmest peer of a workload is about as lean as the leanest."""
        peaks = next((each.values for each in memory if each.workload == row.workload), {})
        peers = [peaks[name] for name in peaks if name != self.subject]
        return row.best_peer in peaks and peaks[row.best_peer] <= LEAN_WITHIN * min(peers)

    def _rounds(self, workload: str, configuration: str, metric: str) -> Rounds:
        return self.figures.get((workload, configuration), {}).get(metric, {})

    def _held(self, workload: Workload, metric: str) -> _Held | None:
        """What is known of a workload in a metric; None where nobody has a figure."""
        rounds = {name: found for name in self.names if (found := self._rounds(workload.name, name, metric))}
        values = _means(rounds)
        if not values:
            return None
        peers = [name for name in values if name != self.subject]
        best = min(peers, key=lambda name: values[name], default=None)
        if best is None or self.subject not in values:
            return _Held(workload, values, best, None, None)
        own = self._rounds(workload.name, self.subject, metric)
        chosen = best_of_other_rounds({name: self._rounds(workload.name, name, metric) for name in peers})
        return _Held(
            workload,
            values,
            best,
            statistics.within_rounds(own, self._rounds(workload.name, best, metric), arms.step(metric)),
            held_out(own, chosen, arms.step(metric)),
        )

    def _row(self, held: _Held) -> ScoreRow:
        # Whoever of the peers turned out the best: as sure as if the subject were held against each of them.
        claims = ASPECTS * len(self.experiment.workloads) * (len(self.names) - 1)
        sure = family.confidence(family.ROWS, claims)
        return ScoreRow(
            workload=held.workload.name,
            counted=held.workload.counted,
            values=held.values,
            best_peer=held.best_peer,
            ratio=_ratio(held.ratio, sure),
            held_out=_ratio(held.held_out, sure),
        )


@dataclass(frozen=True)
class _Held:
    """The subject and its peers on one workload: every figure, and the two ratios as far as they can be made."""

    workload: Workload
    values: dict[str, float]
    best_peer: str | None
    ratio: Estimate | None
    held_out: Estimate | None


def _means(rounds: Mapping[str, Rounds]) -> dict[str, float]:
    """Geometric means over the rounds that all share, so that quotients of them are paired; else each over its own.

    A configuration with a figure that was ever zero has none.
    """
    found = {name: mine for name, mine in rounds.items() if all(0 < value < math.inf for value in mine.values())}
    shared = set.intersection(*(set(mine) for mine in found.values())) if found else set()
    if len(shared) < FEWEST_PAIRS:
        return {name: statistics.geometric_mean(list(mine.values())) for name, mine in found.items()}
    return {name: statistics.geometric_mean([mine[number] for number in shared]) for name, mine in found.items()}


def _mean(held: Sequence[_Held]) -> tuple[Ratio | None, Ratio | None]:
    """Over the workloads' ratios: to the best peers, and to those that were best in the other half of the rounds."""
    if not held:
        return None, None
    found = [[each.ratio for each in held], [each.held_out for each in held]]
    known = [[each for each in estimates if each is not None] for estimates in found]
    means = [
        statistics.weighted([(1 / len(held), each) for each in estimates]) if len(estimates) == len(held) else None
        for estimates in known
    ]
    # In a mean of lowest peers there is luck that no interval knows: the held-out one must say the same.
    sure = family.confidence(family.MEANS, ASPECTS)
    unknown = Estimate(0.0, math.inf, 1.0, 0)
    plain, chosen = means
    return _ratio(plain, sure, unless=chosen or unknown), _ratio(chosen, sure, unless=plain or unknown)


def _ratio(estimate: Estimate | None, sure: float, *, unless: Estimate | None = None) -> Ratio | None:
    """A ratio with its interval; different where that leaves out 1, and so does that of another on the same side."""
    if estimate is None:
        return None
    held = statistics.interval(estimate, sure)
    sides = [held] if unless is None else [held, statistics.interval(unless, sure)]
    different = all(each.known and each.high < 1 for each in sides) or all(
        each.known and each.low > 1 for each in sides
    )
    return Ratio(value=held.value, low=held.low, high=held.high, pairs=held.pairs, different=different)


def metric_of(aspect: str, workload: Workload) -> str:
    """The metric that an aspect is, of a workload."""
    return workload.time if aspect == TIME else METRICS[FAULTS if aspect == LEAN_FAULTS else aspect]


def _left_out(experiment: Experiment, by_arm: Mapping[Arm, Sequence[TrialRecord]]) -> list[LeftOut]:
    found = []
    for workload in experiment.workloads:
        for configuration in experiment.configurations:
            status, reason = arms.verdict(by_arm.get((workload.name, configuration.name), []))
            if status != "ok":
                found.append(
                    LeftOut(
                        workload=workload.name,
                        configuration=configuration.name,
                        status=status,
                        reason=reason or status,
                    )
                )
    return found
