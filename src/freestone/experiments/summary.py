"""What the records of an experiment say, as numbers: records in, summary out. Pure functions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from freestone.experiments import headline, statistics
from freestone.experiments.schedule import plan_round
from freestone.experiments.statistics import Interval
from freestone.records.schema import Cell, Experiment, Metrics, Ratio, Status, Summary, TrialRecord

METRICS = (
    "wall_s",
    "user_s",
    "sys_s",
    "peak_rss_kib",
    "tree_peak_rss_kib",
    "end_rss_kib",
    "minor_faults",
    "major_faults",
    "voluntary_switches",
    "involuntary_switches",
)
"""The fields of :class:`Metrics` that are summarised; hardware counters follow under their own names."""


def summarise(experiment: Experiment, records: Iterable[TrialRecord]) -> Summary:
    """Medians, paired ratios to the baseline, noise floor and headline of one experiment.

    A record of another experiment is left out: it may come from another machine, and machines are never pooled.

    A configuration is paired with the baseline within rounds; where the baseline's two runs of a round are both good,
    their geometric mean is the round's baseline.
    """
    kept = _first_of_each_slot(record for record in records if record.experiment == experiment.id)
    own = _failing_lost_output(experiment.baseline, kept)
    by_arm: dict[tuple[str, str], list[TrialRecord]] = {}
    for record in own:
        by_arm.setdefault((record.workload, record.configuration), []).append(record)
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
    complete = _complete_rounds(experiment, own)
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
        headline=headline.sentence(experiment, cells, _rivalry(experiment, by_arm, noise), complete),
    )


def metric_values(metrics: Metrics) -> dict[str, float]:
    """Every measured number of a trial by its name; what was not measured is absent."""
    values = {name: getattr(metrics, name) for name in METRICS} | metrics.counters
    return {name: float(value) for name, value in values.items() if value is not None}


def _first_of_each_slot(records: Iterable[TrialRecord]) -> list[TrialRecord]:
    seen: dict[tuple[str, str, int, int], TrialRecord] = {}
    for record in records:
        seen.setdefault((record.workload, record.configuration, record.round, record.repeat), record)
    return list(seen.values())


def _failing_lost_output(baseline: str, records: Sequence[TrialRecord]) -> list[TrialRecord]:
    """A trial that wrote nothing where the baseline writes something is a failed run, not a fast one (law 2)."""
    written: dict[str, list[int]] = {}
    for record in _good(records):
        if record.configuration == baseline and record.output is not None:
            written.setdefault(record.workload, []).append(record.output.stdout_bytes)
    expected = {workload: int(statistics.median(sizes)) for workload, sizes in written.items()}

    def checked(record: TrialRecord) -> TrialRecord:
        size = expected.get(record.workload, 0)
        if record.status != "ok" or record.output is None or record.output.stdout_bytes > 0 or size == 0:
            return record
        reason = f"lost output: it wrote nothing where {baseline} writes {size} bytes"
        return record.model_copy(update={"status": "failed", "reason": reason})

    return [checked(record) for record in records]


def _good(records: Iterable[TrialRecord]) -> list[TrialRecord]:
    return [record for record in records if record.status == "ok" and record.metrics is not None]


def _by_round(records: Iterable[TrialRecord], repeat: int | None = None) -> dict[str, dict[int, float]]:
    """Metric -> round -> value; the geometric mean where a round has several."""
    found: dict[str, dict[int, list[float]]] = {}
    for record in _good(records):
        if record.metrics is None or (repeat is not None and record.repeat != repeat):
            continue
        for name, value in metric_values(record.metrics).items():
            found.setdefault(name, {}).setdefault(record.round, []).append(value)
    return {
        name: {
            number: statistics.geometric_mean(values) if min(values) > 0 else 0.0 for number, values in rounds.items()
        }
        for name, rounds in found.items()
    }


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
    return _ratios(_by_round(baseline, repeat=1), _by_round(baseline, repeat=0), seed)


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
    status, reason = _verdict(records)
    good = _good(records) if status == "ok" else []
    values: dict[str, list[float]] = {}
    for record in good:
        if record.metrics is not None:
            for name, value in metric_values(record.metrics).items():
                values.setdefault(name, []).append(value)
    ratios: dict[str, Interval] = {}
    if good and configuration != experiment.baseline and _verdict(baseline)[0] == "ok":
        ratios = _ratios(_by_round(good), _by_round(baseline), experiment.seed)
    return Cell(
        workload=workload,
        configuration=configuration,
        status=status,
        reason=reason,
        trials_ok=len(_good(records)),
        trials_total=len(records),
        median={name: statistics.median(each) for name, each in values.items()},
        ratio={name: _ratio(interval, noise.get(name)) for name, interval in ratios.items()},
        note=_note(records, good, baseline),
    )


def _verdict(records: Sequence[TrialRecord]) -> tuple[Status, str | None]:
    """A cell counts when most of its trials were good; otherwise it is what most of the others were, and says why."""
    bad = [record for record in records if record.status != "ok"]
    if len(records) - len(bad) > len(bad):
        return "ok", None
    if not records:
        return "failed", "not measured"
    status: Status = Counter(record.status for record in bad).most_common(1)[0][0]
    reasons = Counter(record.reason or record.status for record in bad if record.status == status)
    return status, reasons.most_common(1)[0][0]


def _note(records: Sequence[TrialRecord], good: Sequence[TrialRecord], baseline: Sequence[TrialRecord]) -> str | None:
    notes: list[str] = []
    bad = [record for record in records if record.status != "ok"]
    if good and bad:
        reason, _ = Counter(record.reason or record.status for record in bad).most_common(1)[0]
        notes.append(f"{len(bad)} of {len(records)} trials not counted: {reason}")
    said, expected = _said(good), _said(_good(baseline))
    # A program whose output differs from run to run under one allocator says nothing about another.
    if len(expected) == 1 and len(_good(baseline)) > 1 and said - expected:
        notes.append("output differs from the baseline's")
    return "; ".join(notes) or None


def _said(records: Iterable[TrialRecord]) -> set[str]:
    return {record.output.stdout_sha256 for record in records if record.output is not None}


def _complete_rounds(experiment: Experiment, records: Sequence[TrialRecord]) -> int:
    """Rounds in which every trial that is not given up has a record."""
    have: dict[int, set[tuple[str, str, int]]] = {}
    for record in records:
        have.setdefault(record.round, set()).add((record.workload, record.configuration, record.repeat))
    hopeless = {arm for arm, good in _any_good(records).items() if not good}
    needed = {
        (slot.workload, slot.configuration, slot.repeat)
        for slot in plan_round(experiment, 0)
        if (slot.workload, slot.configuration) not in hopeless
    }
    return sum(needed <= present for present in have.values())


def _any_good(records: Iterable[TrialRecord]) -> dict[tuple[str, str], bool]:
    good: dict[tuple[str, str], bool] = {}
    for record in records:
        arm = (record.workload, record.configuration)
        good[arm] = good.get(arm, False) or record.status == "ok"
    return good


def _rivalry(
    experiment: Experiment,
    by_arm: Mapping[tuple[str, str], Sequence[TrialRecord]],
    noise: Mapping[str, Mapping[str, Interval]],
) -> headline.Rivalry:
    """Answers whether one configuration really beats another on a metric of a workload."""

    def beats(workload: str, metric: str, one: str, other: str) -> bool:
        held = [_by_round(by_arm.get((workload, name), [])).get(metric, {}) for name in (one, other)]
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
