"""What the records of an experiment say, as numbers: records in, summary out. Pure functions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from freestone.analysis import arms, headline, last_words, own_heaps, same_work, statistics, winners
from freestone.analysis.statistics import Interval
from freestone.records.schema import Cell, Experiment, Ratio, Summary, TrialRecord, Workload


def summarise(experiment: Experiment, records: Iterable[TrialRecord]) -> Summary:
    """Medians, paired ratios to the baseline, noise floor and headline of one experiment.

    A configuration is paired with the baseline within rounds; where the baseline's two runs of a round are both good,
    their geometric mean is the round's baseline.
    """
    own = arms.without_parameters(arms.counted(experiment, records))
    by_arm = arms.by_arm(own)
    names = [configuration.name for configuration in experiment.configurations]
    by_workload: dict[str, list[TrialRecord]] = {}
    for record in own:
        by_workload.setdefault(record.workload, []).append(record)
    noise = {
        workload.name: _noise(by_arm.get((workload.name, experiment.baseline), []), experiment.seed)
        for workload in experiment.workloads
    }
    cells = [
        _cell(
            experiment,
            workload.name,
            configuration.name,
            by_arm.get((workload.name, configuration.name), []),
            by_arm.get((workload.name, experiment.baseline), []),
            noise[workload.name],
        )
        for workload in experiment.workloads
        for configuration in experiment.configurations
    ]
    complete = arms.complete_rounds(experiment, own)
    noise_rows = {
        workload: {metric: _ratio(interval, None) for metric, interval in intervals.items()}
        for workload, intervals in noise.items()
    }
    return Summary(
        experiment=experiment.id,
        baseline=experiment.baseline,
        rounds_complete=complete,
        cells=cells,
        noise=noise_rows,
        best=winners.best(experiment, cells),
        notes={
            workload.name: lines
            for workload in experiment.workloads
            if (lines := own_heaps.notes(by_workload.get(workload.name, []), names))
        },
        headline=headline.sentence(
            experiment,
            cells,
            _rivalry(experiment, by_arm, noise),
            complete,
            {arm: arms.typical(mine) for arm, mine in by_arm.items()},
        ),
    )


def _ratios(
    one: Mapping[str, Mapping[int, float]], other: Mapping[str, Mapping[int, float]], seed: int
) -> dict[str, Interval]:
    """Metric -> ratio over the rounds that both have."""
    ratios: dict[str, Interval] = {}
    for name in one:
        rounds = sorted(one[name].keys() & other.get(name, {}).keys())
        ratio = statistics.paired_ratio([one[name][r] for r in rounds], [other[name][r] for r in rounds], seed=seed)
        if ratio is not None:
            ratios[name] = ratio
    return ratios


def _noise(baseline: Sequence[TrialRecord], seed: int) -> dict[str, Interval]:
    return _ratios(arms.by_round(baseline, repeat=1), arms.by_round(baseline, repeat=0), seed)


def _ratio(interval: Interval, noise: Interval | None) -> Ratio:
    return Ratio(
        value=interval.value,
        low=interval.low,
        high=interval.high,
        pairs=interval.pairs,
        different=statistics.is_different(interval, noise),
    )


def _cell(
    experiment: Experiment,
    workload: str,
    configuration: str,
    records: Sequence[TrialRecord],
    baseline: Sequence[TrialRecord],
    noise: Mapping[str, Interval],
) -> Cell:
    status, reason = arms.verdict(records)
    good = arms.good(records) if status == "ok" else []
    values: dict[str, list[float]] = {}
    # What has other output is shown, and ranked nowhere.
    for record in arms.measured(records) if status == "different" else good:
        for name, value in arms.metric_values(record).items():
            values.setdefault(name, []).append(value)
    ratios: dict[str, Interval] = {}
    if good and configuration != experiment.baseline and arms.verdict(baseline)[0] == "ok":
        ratios = _ratios(arms.by_round(good), arms.by_round(baseline), experiment.seed)
    return Cell(
        workload=workload,
        configuration=configuration,
        status=status,
        reason=reason,
        trials_ok=len(arms.good(records)),
        trials_total=len(records),
        median={name: statistics.median(each) for name, each in values.items()},
        ratio={name: _ratio(interval, noise.get(name)) for name, interval in ratios.items()},
        note=_note(
            records,
            good,
            next(each for each in experiment.workloads if each.name == workload),
            configuration == experiment.baseline,
        ),
    )


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
    notes += [told for told in [last_words.note(good)] if told]
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


def _rivalry(
    experiment: Experiment,
    by_arm: Mapping[tuple[str, str], Sequence[TrialRecord]],
    noise: Mapping[str, Mapping[str, Interval]],
) -> headline.Rivalry:
    """Answers whether one configuration really beats another on a metric of a workload."""

    def beats(workload: str, metric: str, one: str, other: str) -> bool:
        held = [arms.by_round(by_arm.get((workload, name), [])).get(metric, {}) for name in (one, other)]
        rounds = sorted(held[0].keys() & held[1].keys())
        ratio = statistics.paired_ratio(
            [held[0][number] for number in rounds], [held[1][number] for number in rounds], seed=experiment.seed
        )
        floor = noise.get(workload, {}).get(metric)
        return (
            ratio is not None
            and math.isfinite(ratio.high)
            and ratio.value < 1
            and statistics.is_different(ratio, floor)
        )

    return beats
