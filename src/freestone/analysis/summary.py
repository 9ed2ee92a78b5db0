"""What the records of an experiment say, as numbers: records in, summary out. Pure functions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from freestone.analysis import (
    arms,
    family,
    headline,
    last_words,
    noise_advice,
    own_heaps,
    racing,
    same_work,
    statistics,
    winners,
)
from freestone.analysis.rivals import Rivals
from freestone.analysis.rounds import Arm
from freestone.analysis.statistics import Interval
from freestone.records.notes import told_left_out
from freestone.records.schema import Cell, Experiment, Ratio, Summary, TrialRecord, Workload


def summarise(experiment: Experiment, records: Iterable[TrialRecord]) -> Summary:
    """Figures, paired ratios to the baseline, the A/A comparison and the headline of one experiment.

    A configuration is paired with the baseline within rounds; where the baseline's two runs of a round are both good,
    their geometric mean is the round's baseline. The intervals of a workload's table hold all at once
    (:mod:`freestone.analysis.family`).
    """
    own = arms.without_parameters(arms.counted(experiment, records))
    by_arm = arms.by_arm(own)
    names = [configuration.name for configuration in experiment.configurations]
    by_workload: dict[str, list[TrialRecord]] = {}
    for record in own:
        by_workload.setdefault(record.workload, []).append(record)
    rounds = {arm: arms.by_round(mine) for arm, mine in by_arm.items()}
    tables = {workload.name: _Table.of(experiment, workload.name, by_arm, rounds) for workload in experiment.workloads}
    cells = [
        _cell(tables[workload.name], configuration.name)
        for workload in experiment.workloads
        for configuration in experiment.configurations
    ]
    rivals = Rivals(experiment, rounds)
    out = racing.out(experiment, own)
    cells = [_told_out(cell, out.get((cell.workload, cell.configuration))) for cell in cells]
    racers = [cell for cell in cells if (cell.workload, cell.configuration) not in out]
    complete = arms.complete_rounds(experiment, own, out)
    return Summary(
        experiment=experiment.id,
        baseline=experiment.baseline,
        rounds_complete=complete,
        cells=cells,
        noise={name: table.noise() for name, table in tables.items()},
        best=winners.best(experiment, racers, rivals),
        notes={
            workload.name: lines
            for workload in experiment.workloads
            if (lines := _notes(workload, by_workload.get(workload.name, []), names))
        },
        headline=headline.sentence(
            experiment,
            racers or cells,
            rivals,
            complete,
            {arm: arms.typical(mine) for arm, mine in by_arm.items()} if len(tables) > headline.MOST_TOLD else {},
        ),
        advice={name: told for name, table in tables.items() if (told := _advice(experiment, table, cells))},
    )


def _told_out(cell: Cell, better: str | None) -> Cell:
    """A cell with the note that it got no more rounds, as another configuration is better."""
    if better is None:
        return cell
    said = f"out after {cell.trials_total} rounds: {better} is better"
    return cell.model_copy(update={"note": f"{cell.note}; {said}" if cell.note else said})


def _notes(workload: Workload, records: Sequence[TrialRecord], names: Sequence[str]) -> list[str]:
    lines = own_heaps.notes(records, names) + told_left_out(record.notes for record in records)
    if workload.shell and records:
        lines = [*lines, "the time is that of the whole line, the shell's own start included"]
    return lines


def _advice(experiment: Experiment, table: _Table, cells: Sequence[Cell]) -> list[str]:
    ratios = [cell.ratio[table.time] for cell in cells if cell.workload == table.workload and table.time in cell.ratio]
    return noise_advice.advice(experiment.machine, table.time, ratios, arms.good(table.records.get(table.baseline, [])))


@dataclass(frozen=True)
class _Table:
    """What was measured of one workload, and how sure each claim about it has to be."""

    whole: Workload
    baseline: str
    records: Mapping[str, Sequence[TrialRecord]]
    rounds: Mapping[str, arms.ByRound]
    peers: int
    points: int
    """Workloads of the scan of which it is one; the intervals of all of them hold at once."""
    columns: int
    others: int

    @classmethod
    def of(
        cls,
        experiment: Experiment,
        workload: str,
        by_arm: Mapping[Arm, Sequence[TrialRecord]],
        rounds: Mapping[Arm, arms.ByRound],
    ) -> _Table:
        whole = next(each for each in experiment.workloads if each.name == workload)
        mine = {name: found for (measured, name), found in rounds.items() if measured == workload}
        metrics = {metric for found in mine.values() for metric in found} - {whole.time}
        columns = len(metrics & set(arms.COLUMNS))
        points = _points(experiment, whole)
        return cls(
            whole=whole,
            baseline=experiment.baseline,
            records={name: found for (measured, name), found in by_arm.items() if measured == workload},
            rounds=mine,
            peers=len(experiment.configurations) - 1,
            points=points,
            columns=columns,
            others=len(metrics) - columns,
        )

    @property
    def workload(self) -> str:
        return self.whole.name

    @property
    def time(self) -> str:
        return self.whole.time

    def confidence(self, metric: str, claims: int) -> float:
        """Of one of so many claims about each metric of the same importance."""
        if metric == self.time:
            return family.confidence(family.TIME, claims)
        if metric in arms.COLUMNS:
            return family.confidence(family.COLUMNS, claims * self.columns)
        return family.confidence(family.OTHERS, claims * self.others)

    def ratios(self, configuration: str) -> dict[str, Ratio]:
        """Metric -> ratio to the baseline over the rounds that both have."""
        own, base = self.rounds.get(configuration, {}), self.rounds.get(self.baseline, {})
        return {
            metric: ratio
            for metric in own
            if (ratio := self._ratio(metric, own[metric], base.get(metric, {}), self.peers)) is not None
        }

    def noise(self) -> dict[str, Ratio]:
        """Metric -> the baseline's second run of a round against its first; one claim for each metric."""
        runs = self.records.get(self.baseline, [])
        second, first = arms.by_round(runs, repeat=1), arms.by_round(runs, repeat=0)
        return {
            metric: ratio
            for metric in second
            if (ratio := self._ratio(metric, second[metric], first.get(metric, {}), 1)) is not None
        }

    def _ratio(
        self, metric: str, one: Mapping[int, float], other: Mapping[int, float], configurations: int
    ) -> Ratio | None:
        """Over the rounds that both have, one of so many configurations' claims in this metric."""
        found = statistics.within_rounds(one, other, arms.step(metric))
        sure = self.confidence(metric, configurations * self.points)
        return None if found is None else as_ratio(statistics.interval(found, sure))


def _points(experiment: Experiment, workload: Workload) -> int:
    """How many workloads are told of in one table with this one."""
    if workload.series is None:
        return 1
    return sum(each.series == workload.series for each in experiment.workloads)


def as_ratio(interval: Interval) -> Ratio:
    """An interval as it is recorded: different where it leaves out 1."""
    return Ratio(
        value=interval.value,
        low=interval.low,
        high=interval.high,
        pairs=interval.pairs,
        different=interval.known and interval.excludes_one,
    )


def _cell(table: _Table, configuration: str) -> Cell:
    records = table.records.get(configuration, [])
    baseline = table.records.get(table.baseline, [])
    status, reason = arms.verdict(records)
    good = arms.good(records) if status == "ok" else []
    values: dict[str, list[float]] = {}
    # What has other output is shown, and ranked nowhere.
    for record in arms.measured(records) if status == "different" else good:
        for name, value in arms.metric_values(record).items():
            values.setdefault(name, []).append(value)
    ratios: dict[str, Ratio] = {}
    if good and configuration != table.baseline and arms.verdict(baseline)[0] == "ok":
        ratios = table.ratios(configuration)
    return Cell(
        workload=table.workload,
        configuration=configuration,
        status=status,
        reason=reason,
        trials_ok=len(arms.good(records)),
        trials_total=len(records),
        median={name: statistics.median(each) for name, each in values.items()},
        mean=_means(table, configuration, ratios) if good else {},
        ratio=ratios,
        note=_note(
            records,
            good,
            table.whole,
            configuration == table.baseline,
        ),
    )


def _means(table: _Table, configuration: str, ratios: Mapping[str, Ratio]) -> dict[str, float]:
    """Metric -> geometric mean over rounds, in agreement with the ratio.

    Where rounds are missing, it is the baseline's mean times the ratio: what this configuration would have shown in all
    of the baseline's rounds, some of which may have been slow for everybody.
    """
    own, base = table.rounds[configuration], table.rounds.get(table.baseline, {})
    found: dict[str, float] = {}
    for metric, rounds in own.items():
        if min(rounds.values()) <= 0:
            continue
        found[metric] = statistics.geometric_mean(list(rounds.values()))
        ratio, beside = ratios.get(metric), base.get(metric, {})
        if ratio is not None and beside.keys() != rounds.keys() and min(beside.values()) > 0:
            held = statistics.geometric_mean(list(beside.values())) * ratio.value
            if 0 < held < math.inf:
                found[metric] = held
    return found


def _note(
    records: Sequence[TrialRecord], good: Sequence[TrialRecord], workload: Workload, is_baseline: bool
) -> str | None:
    notes: list[str] = []
    allowed = [record for record in records if record.status == "allowed"]
    if good and allowed:
        reason, _ = Counter(record.reason or "failed" for record in allowed).most_common(1)[0]
        notes.append(f"{len(allowed)} of {len(records)} trials failed, as was allowed: {reason}")
    says = any(record.output is not None and record.output.stdout_bytes > 0 for record in good)
    looked_at = workload.service is None and not workload.output_may_differ
    if is_baseline and says and looked_at and not same_work.is_the_same(good):
        notes.append("its output is never the same, so nobody knows whether all did the same work: --compare-output")
    steered = {name: value for record in good for name, value in record.steered.items()}
    if steered:
        told = ", ".join(f"{name}={value}" for name, value in list(steered.items())[:4])
        notes.append(f"its own scripts set {told}: that steers some allocators and others not")
    notes += [told for told in [last_words.note(good, served=workload.service is not None)] if told]
    notes += _tree(good)
    return "; ".join(notes) or None


OUTLIVING = 0.01
"""From this share of a trial's time on, it is told that processes outlived the first one."""


def _tree(good: Sequence[TrialRecord]) -> list[str]:
    """What outlived the first process, and whether the time holds it."""
    survivors = dict.fromkeys(program for record in good for program in record.survivors)
    if survivors:
        return [f"the time is that of the first process alone; left behind and ended: {', '.join(survivors)}"]
    metrics = [record.metrics for record in good if record.metrics is not None]
    if any(each.outlived_s > OUTLIVING * each.wall_s for each in metrics):
        return ["processes outlive the first one; the time is to the end of the last"]
    return []


def _said(records: Iterable[TrialRecord]) -> set[str]:
    return {record.output.stdout_sha256 for record in records if record.output is not None}
