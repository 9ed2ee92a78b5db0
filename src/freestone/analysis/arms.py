"""An experiment's records sorted by arm (a workload under a configuration), and which of them count. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from freestone.analysis import last_words, same_program, same_work, statistics
from freestone.analysis.rounds import Arm, plan_round
from freestone.records.schema import (
    FIGURE,
    HISTOGRAM,
    KEPT_MEMORY,
    OWN_TIME,
    CellStatus,
    Experiment,
    Proof,
    Status,
    TrialRecord,
)

ByRound = dict[str, dict[int, float]]
"""Metric -> round -> value."""

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

SERVED = tuple(
    f"{FIGURE}{name}"
    for name in (
        *("mean_seconds", "p50_seconds", "p99_seconds", "p999_seconds", "cpu_seconds"),
        *("rss_kib_loaded", "faults_per_1000"),
    )
)
"""What is told of a server under load."""

COLUMNS = (*METRICS, *KEPT_MEMORY, *SERVED)
"""What tables have columns for."""


PAGE_KIB = 4.0
"""The least of which memory is had."""


def step(metric: str) -> float:
    """The steps in which a metric is counted, in its unit; 0 for one that is measured, such as time."""
    if metric.startswith(f"{FIGURE}rss_kib") or metric.endswith("_kib"):
        return PAGE_KIB
    return 1.0 if metric.endswith(("_faults", "_switches")) else 0.0


def counted(experiment: Experiment, records: Iterable[TrialRecord]) -> list[TrialRecord]:
    """An experiment's own records, one for each slot, with what only a look at all of them tells.

    A record of another experiment is left out: it may come from another machine, and machines are never pooled.
    """
    own = same_program.marked(
        [_as_proved(each) for each in _first_of_each_slot(each for each in records if each.experiment == experiment.id)]
    )
    found = {arm: list(mine) for arm, mine in by_arm(_failing_lost_output(experiment.baseline, own)).items()}
    for workload in experiment.workloads:
        baseline = found.get((workload.name, experiment.baseline), [])
        for configuration in experiment.configurations:
            arm = (workload.name, configuration.name)
            if arm in found:
                if configuration.name != experiment.baseline:
                    found[arm] = same_work.marked(workload, experiment.baseline, good(baseline), found[arm])
                    found[arm] = last_words.marked(experiment.baseline, good(baseline), found[arm])
                found[arm] = _allowing(workload.allow_failures, found[arm])
    return [record for mine in found.values() for record in mine]


def by_arm(records: Iterable[TrialRecord]) -> dict[Arm, list[TrialRecord]]:
    """The records of each workload under each configuration."""
    found: dict[Arm, list[TrialRecord]] = {}
    for record in records:
        found.setdefault((record.workload, record.configuration), []).append(record)
    return found


def metric_values(record: TrialRecord) -> dict[str, float]:
    """Every number of a trial by its metric's name; without what was not measured and a histogram's buckets."""
    figures = {FIGURE + name: value for name, value in (record.figures or {}).items() if HISTOGRAM not in name}
    if record.metrics is None:
        return figures
    values = {name: getattr(record.metrics, name) for name in METRICS} | record.metrics.counters
    return {name: float(value) for name, value in values.items() if value is not None} | figures


def without_parameters(records: Sequence[TrialRecord]) -> list[TrialRecord]:
    """The records without the figures that say what a program was told to do rather than what came of it.

    They are those that are the same in every trial of a workload, such as a number of operations. CPU time of a server
    that only some of a workload's trials tell goes too: the short ones leave it out, and the rest are no fair sample.
    """
    coarse = {
        record.workload
        for record in good(records)
        if record.figures is not None and "rss_kib_loaded" in record.figures and "cpu_seconds" not in record.figures
    }
    seen: dict[tuple[str, str], set[float]] = {}
    for record in good(records):
        for name, value in (record.figures or {}).items():
            seen.setdefault((record.workload, name), set()).add(value)

    def measured(record: TrialRecord) -> TrialRecord:
        if record.figures is None:
            return record
        kept = {
            name: value
            for name, value in record.figures.items()
            if (FIGURE + name == OWN_TIME or len(seen.get((record.workload, name), ())) > 1)
            and not (name == "cpu_seconds" and record.workload in coarse)
        }
        return record.model_copy(update={"figures": kept})

    return [measured(record) for record in records]


def _allowing(most: int, records: Sequence[TrialRecord]) -> list[TrialRecord]:
    """The records with failures taken for allowed where there are no more than ``most``.

    Nobody can allow a trial that was not proved, nor one that was ended by the time limit: it is the slowest of all,
    and without it the others would look faster than they are.
    """
    if not 0 < sum(record.status == "failed" for record in records) <= most:
        return list(records)
    return [
        record.model_copy(update={"status": "allowed"}) if record.status == "failed" else record for record in records
    ]


def _as_proved(record: TrialRecord) -> TrialRecord:
    """A record is no better than its proof, whoever wrote its status."""
    if record.status != "ok" or (record.proof.valid and _is_shown(record.proof)):
        return record
    return record.model_copy(update={"status": "invalid", "reason": record.proof.reason or "its proof is not valid"})


def _is_shown(proof: Proof) -> bool:
    """Whether a proof that calls itself valid shows no process that is not proved."""
    return all(process.proved for process in proof.processes)


def _first_of_each_slot(records: Iterable[TrialRecord]) -> list[TrialRecord]:
    seen: dict[tuple[str, str, int, int], TrialRecord] = {}
    for record in records:
        seen.setdefault((record.workload, record.configuration, record.round, record.repeat), record)
    return list(seen.values())


def _failing_lost_output(baseline: str, records: Sequence[TrialRecord]) -> list[TrialRecord]:
    """A trial that wrote nothing where the baseline writes something is a failed run, not a fast one (law 2)."""
    written: dict[str, list[int]] = {}
    for record in good(records):
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


def good(records: Iterable[TrialRecord]) -> list[TrialRecord]:
    """The trials that are counted."""
    return [record for record in records if record.status == "ok" and record.metrics is not None]


def measured(records: Iterable[TrialRecord]) -> list[TrialRecord]:
    """The trials that have figures to show, be it that their output differs."""
    return [record for record in records if record.status in ("ok", "different") and record.metrics is not None]


def by_round(records: Iterable[TrialRecord], repeat: int | None = None) -> ByRound:
    """Metric -> round -> value; the geometric mean where a round has several."""
    found: dict[str, dict[int, list[float]]] = {}
    for record in good(records):
        if repeat is not None and record.repeat != repeat:
            continue
        for name, value in metric_values(record).items():
            found.setdefault(name, {}).setdefault(record.round, []).append(value)
    return {
        name: {number: values[0] if len(values) == 1 else _mean(values) for number, values in rounds.items()}
        for name, rounds in found.items()
    }


def _mean(values: Sequence[float]) -> float:
    return statistics.geometric_mean(values) if min(values) > 0 else 0.0


def typical(records: Sequence[TrialRecord]) -> dict[str, float]:
    """Metric -> geometric mean over rounds, of an arm that counts; a metric that was ever zero has none."""
    if verdict(records)[0] != "ok":
        return {}
    return {
        name: statistics.geometric_mean(list(rounds.values()))
        for name, rounds in by_round(records).items()
        if min(rounds.values()) > 0
    }


def verdict(records: Sequence[TrialRecord]) -> tuple[CellStatus, str | None]:
    """A cell counts when all of its trials do; otherwise it is what most of the others were, and says how many and why.

    The trials that are left of an arm that fails now and then are not what it costs: those that failed may be the slow
    ones, or those in which there was most to do. Without a trial it is neither good nor bad.
    """
    if not records:
        return "unmeasured", "its turn never came"
    bad = [record for record in records if record.status not in ("ok", "allowed")]
    if not bad and any(record.status == "ok" for record in records):
        return "ok", None
    bad = bad or list(records)
    # What has other output is still a measurement; what failed is none, and says more.
    broken = [record for record in bad if record.status != "different"] or bad
    status = Counter(record.status for record in broken).most_common(1)[0][0]
    cell = _CELL.get(status, "failed")
    reasons = Counter(record.reason or record.status for record in broken if record.status == status)
    (reason, _), *others = reasons.most_common()
    more = f" (and {len(others)} other reason{'s' if len(others) > 1 else ''})" if others else ""
    count = "" if len(broken) == len(records) else f"{len(broken)} of {len(records)} {_BAD.get(cell, 'failed')}: "
    return cell, f"{count}{reason}{more}"


_CELL: Mapping[Status, CellStatus] = {"timeout": "timeout", "invalid": "invalid", "different": "different"}
"""What a cell is whose trials are that; failed, where nothing else is said."""

_BAD: Mapping[CellStatus, str] = {"timeout": "timed out", "invalid": "not proved", "different": "differ"}
"""What is said of some trials among others."""


def complete_rounds(experiment: Experiment, records: Sequence[TrialRecord], out: Collection[Arm] = ()) -> int:
    """Rounds in which every trial has a record, but for those that are given up or ``out`` of the race."""
    have: dict[int, set[tuple[str, str, int]]] = {}
    for record in records:
        have.setdefault(record.round, set()).add((record.workload, record.configuration, record.repeat))
    hopeless = {arm for arm, any_good in _any_good(records).items() if not any_good}
    needed = {
        (slot.workload, slot.configuration, slot.repeat)
        for slot in plan_round(experiment, 0)
        if (slot.workload, slot.configuration) not in hopeless.union(out)
    }
    return sum(needed <= present for present in have.values())


def _any_good(records: Iterable[TrialRecord]) -> dict[Arm, bool]:
    return {arm: any(record.status == "ok" for record in mine) for arm, mine in by_arm(records).items()}
