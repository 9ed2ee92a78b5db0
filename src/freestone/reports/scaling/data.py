"""A quantity against the number in which the workloads of a family differ. Pure functions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from freestone.analysis import medians
from freestone.records.schema import Experiment, Summary, TrialRecord
from freestone.reports import quantities
from freestone.reports.families import Family
from freestone.reports.numerals import bytes_in_words, count_in_words
from freestone.reports.quantities import Kind, quantity_of
from freestone.reports.shown import counting

Measure = Literal["time", "peak_rss_kib", "minor_faults"]
MEASURES: tuple[Measure, ...] = ("time", "peak_rss_kib", "minor_faults")
OPERATIONS = "operations"
"""The figure in which a program says how much it did."""


@dataclass(frozen=True)
class Point:
    """One configuration on one workload of the family."""

    at: int
    median: float
    low: float
    high: float
    """The 95 % interval of the median; of too few rounds for one, the smallest and the largest value."""
    trials: tuple[float, ...]
    """Every value, in the order of the rounds."""


def lines(
    experiment: Experiment, summary: Summary, records: Iterable[TrialRecord], family: Family, measure: Measure
) -> dict[str, list[Point]]:
    """The points of each configuration that has a result, in the order of the experiment.

    Time and faults are those of one operation where every program says how many it did. Where they do not, and were
    told to do unlike amounts, nothing can be held against each other and there are no lines.
    """
    at = {member.workload: member.at for member in family.members}
    mine = [record for record in counting(summary, records, at) if not record.repeat]
    divided = is_by_operation(mine, measure)
    if measure != "peak_rss_kib" and not divided and not family.same_work:
        return {}
    times = {workload.name: workload.time for workload in experiment.workloads}
    values: dict[str, dict[int, list[float]]] = {each.name: {} for each in experiment.configurations}
    for record in sorted(mine, key=lambda record: record.round):
        value = quantities.value_of(record, times[record.workload] if measure == "time" else measure)
        if value is not None and math.isfinite(value):
            value /= (record.figures or {})[OPERATIONS] if divided else 1
            values[record.configuration].setdefault(at[record.workload], []).append(value)
    return {
        name: [_point(number, by_number[number]) for number in sorted(by_number)]
        for name, by_number in values.items()
        if by_number
    }


def is_by_operation(records: Iterable[TrialRecord], measure: Measure) -> bool:
    """Whether a measure is that of one operation: not memory, and only where every trial says how many there were."""
    said = [(record.figures or {}).get(OPERATIONS, 0) for record in records if record.status == "ok"]
    return measure != "peak_rss_kib" and bool(said) and all(number > 0 for number in said)


def kind_of(measure: Measure) -> Kind:
    """What its values are counted in: seconds, KiB, faults."""
    return "time" if measure == "time" else quantity_of(measure).kind


def quantity_title(measure: Measure) -> str:
    """``Time``, ``Peak RSS``, ``Minor faults``."""
    return "Time" if measure == "time" else quantity_of(measure).title


def number_in_words(family: Family, number: int) -> str:
    """A member's number as its axis has it: ``4 KiB``, ``10 k``, ``64``."""
    if family.is_bytes:
        return bytes_in_words(number)
    return count_in_words(number)


def _point(at: int, values: Sequence[float]) -> Point:
    low, high = medians.interval(values) or (min(values), max(values))
    return Point(at, statistics.median(values), low, high, tuple(values))
