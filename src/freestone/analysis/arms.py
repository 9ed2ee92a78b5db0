"""An experiment's records sorted by arm (a workload under a configuration), and which of them count. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from freestone.analysis import statistics
from freestone.analysis.rounds import Arm, plan_round
from freestone.records.schema import FIGURE, HISTOGRAM, OWN_TIME, CellStatus, Experiment, TrialRecord

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


def counted(experiment: Experiment, records: Iterable[TrialRecord]) -> list[TrialRecord]:
    """An experiment's own records, one for each slot, with what only a look at all of them tells.

    A record of another experiment is left out: it may come from another machine, and machines are never pooled.
    """
    own = _first_of_each_slot(record for record in records if record.experiment == experiment.id)
    return _failing_lost_output(experiment.baseline, own)


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

    They are those that are the same in every trial of a workload, such as a number of operations.
    """
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
            if FIGURE + name == OWN_TIME or len(seen.get((record.workload, name), ())) > 1
        }
        return record.model_copy(update={"figures": kept})

    return [measured(record) for record in records]


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


def by_round(records: Iterable[TrialRecord], repeat: int | None = None) -> dict[str, dict[int, float]]:
    """Metric -> round -> value; the geometric mean where a round has several."""
    found: dict[str, dict[int, list[float]]] = {}
    for record in good(records):
        if repeat is not None and record.repeat != repeat:
            continue
        for name, value in metric_values(record).items():
            found.setdefault(name, {}).setdefault(record.round, []).append(value)
    return {
        name: {
            number: statistics.geometric_mean(values) if min(values) > 0 else 0.0 for number, values in rounds.items()
        }
        for name, rounds in found.items()
    }


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
    """A cell counts when most of its trials were good; otherwise it is what most of the others were, and says why.

    Without a trial it is neither good nor bad.
    """
    bad = [record for record in records if record.status != "ok"]
    if len(records) - len(bad) > len(bad):
        return "ok", None
    if not records:
        return "unmeasured", "its turn never came"
    status: CellStatus = Counter(record.status for record in bad).most_common(1)[0][0]
    reasons = Counter(record.reason or record.status for record in bad if record.status == status)
    return status, reasons.most_common(1)[0][0]


def complete_rounds(experiment: Experiment, records: Sequence[TrialRecord]) -> int:
    """Rounds in which every trial that is not given up has a record."""
    have: dict[int, set[tuple[str, str, int]]] = {}
    for record in records:
        have.setdefault(record.round, set()).add((record.workload, record.configuration, record.repeat))
    hopeless = {arm for arm, any_good in _any_good(records).items() if not any_good}
    needed = {
        (slot.workload, slot.configuration, slot.repeat)
        for slot in plan_round(experiment, 0)
        if (slot.workload, slot.configuration) not in hopeless
    }
    return sum(needed <= present for present in have.values())


def _any_good(records: Iterable[TrialRecord]) -> dict[Arm, bool]:
    return {arm: any(record.status == "ok" for record in mine) for arm, mine in by_arm(records).items()}
