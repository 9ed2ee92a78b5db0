"""What an experiment of many workloads says as a whole: records in, scoreboard out. Pure functions.

Two figures, which answer two questions. The *field*: how far is each configuration from the best of all, workload by
workload? The *subject* against its best peer: what does whoever already chose the best allocator for each workload
gain or lose? The best peer is chosen by its figure in the same records, so chance favours it: the ratio is, if
anything, too high. Beside it stands the ratio to the peer that was best in the other rounds (*foreseen*), which is, if
anything, too low.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from freestone.analysis import arms, statistics
from freestone.analysis.best_peer import foreseen
from freestone.analysis.field import standings
from freestone.analysis.rounds import Arm
from freestone.analysis.statistics import Interval
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
    again = {
        workload.name: (arms.by_round(mine, repeat=1), arms.by_round(mine, repeat=0))
        for workload in experiment.workloads
        if (mine := by_arm.get((workload.name, experiment.baseline), []))
    }
    typical = {arm: arms.typical(mine) for arm, mine in by_arm.items()}
    board = _Board(experiment, subject, figures, typical, again)
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
        typical: Mapping[Arm, Mapping[str, float]],
        again: Mapping[str, tuple[dict[str, Rounds], dict[str, Rounds]]],
    ) -> None:
        self.experiment = experiment
        self.subject = subject
        self.figures = figures
        self.typical = typical
        self.again = again
        self.names = [configuration.name for configuration in experiment.configurations]
        self.workloads = {workload.name: workload for workload in experiment.workloads}

    def aspect(self, name: str, only: Sequence[str] | None = None) -> Aspect:
        """One aspect over all workloads that have it, or over those named."""
        rows = []
        for workload in self.experiment.workloads:
            if only is None or workload.name in only:
                row = self._row(workload, metric_of(name, workload))
                if row is not None:
                    rows.append(row)
        held = [row for row in rows if row.counted and row.ratio is not None]
        return Aspect(
            name=name,
            rows=rows,
            field=standings({row.workload: row.values for row in rows if row.counted}),
            mean=self._mean(name, held),
            foreseen=self._foreseen_mean(name, held),
            worst=max(held, key=lambda row: row.ratio.value if row.ratio else 0.0, default=None),
        )

    def is_lean(self, row: ScoreRow, memory: Sequence[ScoreRow]) -> bool:
        """Whether the calmest peer of a workload is about as lean as the leanest."""
        peaks = next((each.values for each in memory if each.workload == row.workload), {})
        peers = [peaks[name] for name in peaks if name != self.subject]
        return row.best_peer in peaks and peaks[row.best_peer] <= LEAN_WITHIN * min(peers)

    def _rounds(self, workload: str, configuration: str, metric: str) -> Rounds:
        return self.figures.get((workload, configuration), {}).get(metric, {})

    def _row(self, workload: Workload, metric: str) -> ScoreRow | None:
        arms_here = {name: self.typical.get((workload.name, name), {}) for name in self.names}
        values = {name: figures[metric] for name, figures in arms_here.items() if metric in figures}
        if not values:
            return None
        peers = [name for name in values if name != self.subject]
        best = min(peers, key=lambda name: values[name], default=None)
        held = best is not None and self.subject in values
        return ScoreRow(
            workload=workload.name,
            counted=workload.counted,
            values=values,
            best_peer=best,
            ratio=self._ratio(workload.name, self._rounds(workload.name, best or "", metric), metric) if held else None,
            foreseen=self._ratio(workload.name, self._foreseen(workload.name, metric), metric) if held else None,
        )

    def _foreseen(self, workload: str, metric: str) -> Rounds:
        peers = [name for name in self.names if name != self.subject]
        return foreseen({name: self._rounds(workload, name, metric) for name in peers})

    def _ratio(self, workload: str, other: Rounds, metric: str) -> Ratio | None:
        interval = _paired(self._rounds(workload, self.subject, metric), other, self.experiment.seed)
        if interval is None:
            return None
        second, first = (runs.get(metric, {}) for runs in self.again.get(workload, ({}, {})))
        return _as_ratio(interval, _paired(second, first, self.experiment.seed))

    def _mean(self, name: str, rows: Sequence[ScoreRow]) -> Ratio | None:
        """Against the best peers."""
        others = [self._rounds(row.workload, row.best_peer or "", self._metric(name, row)) for row in rows]
        return self._mean_of(name, rows, [row.ratio for row in rows], others)

    def _foreseen_mean(self, name: str, rows: Sequence[ScoreRow]) -> Ratio | None:
        """Against the peers that were best in the other rounds."""
        others = [self._foreseen(row.workload, self._metric(name, row)) for row in rows]
        return self._mean_of(name, rows, [row.foreseen for row in rows], others)

    def _metric(self, aspect: str, row: ScoreRow) -> str:
        return metric_of(aspect, self.workloads[row.workload])

    def _mean_of(
        self, name: str, rows: Sequence[ScoreRow], held: Sequence[Ratio | None], others: Sequence[Rounds]
    ) -> Ratio | None:
        """Over the rows' ratios; its interval from the rounds that all of them have, each round's mean one value."""
        ratios = [ratio.value for ratio in held if ratio is not None]
        if not ratios or len(ratios) < len(rows):
            return None
        ones, seconds, firsts = [], [], []
        for row in rows:
            metric = self._metric(name, row)
            ones.append(self._rounds(row.workload, self.subject, metric))
            second, first = (runs.get(metric, {}) for runs in self.again.get(row.workload, ({}, {})))
            seconds.append(second)
            firsts.append(first)
        interval = _paired_means(ones, others, self.experiment.seed)
        value = statistics.geometric_mean(ratios)
        known = interval or Interval(value, 0.0, math.inf, 0)
        noise = _paired_means(seconds, firsts, self.experiment.seed)
        return _as_ratio(Interval(value, known.low, known.high, known.pairs), noise)


def metric_of(aspect: str, workload: Workload) -> str:
    """The metric that an aspect is, of a workload."""
    return workload.time if aspect == TIME else METRICS[FAULTS if aspect == LEAN_FAULTS else aspect]


def _paired(one: Rounds, other: Rounds, seed: int) -> Interval | None:
    rounds = sorted(one.keys() & other.keys())
    return statistics.paired_ratio([one[r] for r in rounds], [other[r] for r in rounds], seed=seed)


def _paired_means(ones: Sequence[Rounds], others: Sequence[Rounds], seed: int) -> Interval | None:
    """The ratio of two geometric means over workloads, paired within the rounds in which no workload is missing."""
    common = sorted(set.intersection(*(set(each) for each in [*ones, *others])))
    if any(each[r] <= 0 for each in [*ones, *others] for r in common):
        return None
    return statistics.paired_ratio(
        [statistics.geometric_mean([each[r] for each in ones]) for r in common],
        [statistics.geometric_mean([each[r] for each in others]) for r in common],
        seed=seed,
    )


def _as_ratio(interval: Interval, noise: Interval | None) -> Ratio:
    return Ratio(
        value=interval.value,
        low=interval.low,
        high=interval.high,
        pairs=interval.pairs,
        different=statistics.is_different(interval, noise),
    )


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
