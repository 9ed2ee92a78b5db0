"""A metric against a parameter: one line for each configuration. Pure functions.

The parameter is one of a suite or of a scan, or the last part of a program's own figures: ``malloc_ns/64`` is a size,
``malloc_ns/p99.9`` a percentile.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from freestone.analysis import medians
from freestone.analysis.statistics import paired_ratio
from freestone.records.schema import FIGURE, Experiment, Summary, TrialRecord, Workload
from freestone.reports import quantities
from freestone.reports.numerals import bytes_in_words, count_in_words
from freestone.reports.quantities import Kind
from freestone.reports.shown import counting, left_out

FEWEST = 3
"""Values of a parameter that make a line worth drawing."""
Measure = Literal["time", "peak_rss_kib", "minor_faults"]
MEASURES: tuple[Measure, ...] = ("time", "peak_rss_kib", "minor_faults")
OPERATIONS, FLOOR = "operations", "floor_seconds"
"""Figures in which a program says how much it did, and how long its loop takes without an allocator."""

_NUMBER = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)([KMGkmg]?)")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_BYTES = frozenset({"size", "least", "most", "bytes", "block"})
_MEANINGS = {
    "malloc_and_write": "malloc with the first write of the block's first word",
    "malloc_free": "malloc with its free",
    "calloc": "calloc alone; its free is not on the clock",
    "touch": "malloc and one byte written in each page",
    "memset": "malloc and memset of the whole block",
}

Values = Mapping[int, float]
"""By round."""


@dataclass(frozen=True)
class Point:
    """One configuration at one value of the parameter."""

    value: float
    low: float
    high: float
    trials: tuple[float, ...] = ()
    """The rounds' values, in their order."""
    is_interval: bool = False
    """Whether ``low`` and ``high`` are the 95 % interval; if not, the smallest and the largest trial."""


Line = dict[float, Point]
"""By place on the axis."""


@dataclass(frozen=True)
class Series:
    """One metric of several configurations against one parameter."""

    title: str
    subject: str
    parameter: str
    kind: Kind
    labels: Mapping[float, str]
    """The parameter's values in words, by place on the axis, in ascending order."""
    lines: Mapping[str, Line]
    how: str
    is_words: bool = False
    """Whether the values are words, which stand equally far apart."""
    reference: str = ""
    """What each value is a ratio to; empty for absolute values."""
    floor: Mapping[float, float] = field(default_factory=dict)
    """The metric without an allocator."""
    published: Mapping[str, Mapping[float, float]] = field(default_factory=dict)
    """Values of others, by their names."""
    left_out: str = ""


@dataclass(frozen=True)
class Family:
    """Workloads of one template that differ in one parameter."""

    name: str
    parameter: str
    labels: Mapping[float, str]
    members: Mapping[str, float]
    """Workload -> place on the axis, in ascending order."""
    is_words: bool
    same_work: bool
    """Whether nothing else differs in their commands, as in a scan."""


class Trials:
    """The trials that count, by workload and configuration."""

    def __init__(self, experiment: Experiment, summary: Summary, records: Iterable[TrialRecord]) -> None:
        self.configurations = [each.name for each in experiment.configurations]
        self.workloads = {each.name: each for each in experiment.workloads}
        self._records: dict[tuple[str, str], list[TrialRecord]] = {}
        for record in sorted(counting(summary, records), key=lambda record: record.round):
            if not record.repeat:
                self._records.setdefault((record.workload, record.configuration), []).append(record)

    def of(self, workloads: Collection[str]) -> Iterable[TrialRecord]:
        """All of some workloads."""
        for workload in workloads:
            for name in self.configurations:
                yield from self._records.get((workload, name), ())

    def have(self, workloads: Collection[str], figure: str) -> bool:
        """Whether every trial of some workloads has a figure above 0, and there is one."""
        found = [(record.figures or {}).get(figure, 0) > 0 for record in self.of(workloads)]
        return bool(found) and all(found)

    def values(
        self, workload: str, configuration: str, metric: str, *, divided: bool = False, net: bool = False
    ) -> dict[int, float]:
        """A metric by round.

        Args:
            metric: ``time`` is the workload's own.
            divided: by the operations of the trial.
            net: without the harness, which the program measured.
        """
        found = {}
        for record in self._records.get((workload, configuration), ()):
            value = quantities.value_of(record, self.workloads[workload].time if metric == "time" else metric)
            if value is None:
                continue
            said = record.figures or {}
            value = (value - (said[FLOOR] if net else 0)) / (said[OPERATIONS] if divided else 1)
            if math.isfinite(value):
                found[record.round] = value
        return found


def point(values: Values) -> Point | None:
    """The median with its interval; None without a value."""
    if not values:
        return None
    trials = tuple(values.values())
    found = medians.interval(trials)
    low, high = found or (min(trials), max(trials))
    return Point(statistics.median(trials), low, high, trials, is_interval=found is not None)


def ratio(values: Values, reference: Values) -> Point | None:
    """The ratio paired within rounds; None if no round has both, or a value of a shared one is not above 0."""
    rounds = [number for number in values if number in reference]
    found = paired_ratio([values[each] for each in rounds], [reference[each] for each in rounds])
    if found is None:
        return None
    trials = tuple(values[each] / reference[each] for each in rounds)
    known = found.high < math.inf
    low, high = (found.low, found.high) if known else (min(trials), max(trials))
    return Point(found.value, low, high, trials, is_interval=known)


def families(workloads: Sequence[Workload]) -> list[Family]:
    """Every template's workloads against each of its parameters, the others fixed, if there are enough of them."""
    groups: dict[tuple[str, str, tuple[tuple[str, str], ...]], dict[str, Workload]] = {}
    for workload in workloads:
        template = workload.template or workload.series
        for parameter, value in workload.parameters.items() if template else ():
            others = tuple((key, each) for key, each in sorted(workload.parameters.items()) if key != parameter)
            groups.setdefault((template or "", parameter, others), {}).setdefault(value, workload)
    return [
        _family(template, parameter, dict(others), members)
        for (template, parameter, others), members in groups.items()
        if len(members) >= FEWEST
    ]


def series(trials: Trials, summary: Summary, family: Family) -> list[Series]:
    """Time, memory and faults against a number; against words the time, and its ratio to the first of them.

    Time and faults are those of one operation if every program says how many it did. If some do not, and were told to
    do unlike amounts, nothing can be compared and there is no time.
    """
    divided = trials.have(family.members, OPERATIONS)
    found = []
    for measure in MEASURES[:1] if family.is_words else MEASURES:
        if measure == "peak_rss_kib":
            found.append(_of_family(trials, summary, family, measure))
        elif divided or family.same_work:
            found.append(_of_family(trials, summary, family, measure, divided=divided))
            if family.is_words:
                found.append(_of_family(trials, summary, family, measure, divided=divided, is_ratio=True))
    return [each for each in found if any(len(line) > 1 or each.reference for line in each.lines.values())]


def of_figures(trials: Trials, summary: Summary, workload: str) -> list[Series]:
    """The figures ``NAME_ns/VALUE`` that a program says: nanoseconds by size in bytes, or by percentile."""
    said: dict[str, dict[str, None]] = {}
    for record in trials.of([workload]):
        for figure in record.figures or ():
            head, _, value = figure.partition("/")
            if head.endswith("_ns") and value and head != "nothing_ns":
                said.setdefault(head, {})[value] = None
    return [
        _of_figure(trials, summary, workload, head, list(values)) for head, values in said.items() if len(values) > 1
    ]


def number_of(word: str) -> float | None:
    """``64``, ``0.5``, ``4K`` as numbers, sizes by powers of 1024; None for anything else."""
    match = _NUMBER.fullmatch(word)
    return float(match[1]) * _UNITS[match[2].lower()] if match else None


def _family(template: str, parameter: str, others: Mapping[str, str], members: Mapping[str, Workload]) -> Family:
    places, labels, is_words = _places(parameter, list(members))
    filled = re.sub(r"\{(\w+)\}", lambda match: {**others, parameter: "…"}.get(match[1], match[0]), template)
    behind = [f"{key}={value}" for key, value in others.items() if f"{{{key}}}" not in template]
    rest = {tuple(word for word in each.command if word not in each.parameters.values()) for each in members.values()}
    ordered = sorted(members, key=lambda value: places[value])
    return Family(
        " ".join([filled, *behind]),
        parameter,
        labels,
        {members[value].name: places[value] for value in ordered},
        is_words,
        same_work=len(rest) == 1 or all(each.series for each in members.values()),
    )


def _places(parameter: str, values: Sequence[str]) -> tuple[dict[str, float], dict[float, str], bool]:
    """Where each value stands on the axis, what it is called there, and whether the values are words."""
    numbers = {value: number for value in values if (number := number_of(value)) is not None}
    if len(numbers) < len(values):
        numbers = {value: float(place) for place, value in enumerate(values)}
        return numbers, {numbers[value]: value for value in values}, True
    is_bytes = parameter in _BYTES
    places = sorted(numbers.values())
    return numbers, {at: bytes_in_words(int(at)) if is_bytes else count_in_words(at) for at in places}, False


def _of_family(
    trials: Trials, summary: Summary, family: Family, measure: Measure, *, divided: bool = False, is_ratio: bool = False
) -> Series:
    net = is_ratio and trials.have(family.members, FLOOR)
    lines: dict[str, Line] = {}
    for name in trials.configurations:
        by_place = {
            at: values
            for workload, at in family.members.items()
            if (values := trials.values(workload, name, measure, divided=divided, net=net))
            and not (net and _is_eaten(values, trials.values(workload, name, f"{FIGURE}{FLOOR}", divided=divided)))
        }
        first = by_place.pop(0, {}) if is_ratio else {}
        found = {at: ratio(values, first) if is_ratio else point(values) for at, values in by_place.items()}
        line = {at: each for at, each in found.items() if each is not None}
        if line:
            lines[name] = line
    quantity = quantities.quantity_of("wall_s" if measure == "time" else measure)
    how = "Medians"
    if is_ratio:
        how = "Geometric means of the rounds' ratios" + (", without the harness" if net else "")
    elif divided:
        whole = "Of the whole process, its start and its preparation too, divided by its operations; medians"
        wall = "Wall time of what the program measures, divided by all operations of all threads; medians"
        how = wall if measure == "time" else whole
    return Series(
        ("Time" if measure == "time" else quantity.title) + (" of one operation" if divided else ""),
        family.name,
        family.parameter,
        "count" if is_ratio else quantity.kind,
        {at: words for at, words in family.labels.items() if at or not is_ratio},
        lines,
        how,
        family.is_words,
        reference=family.labels[0] if is_ratio else "",
        floor=_floors(trials, family) if measure == "time" and divided and not is_ratio else {},
        left_out=left_out(summary, family.members),
    )


def _is_eaten(net: Values, floors: Values) -> bool:
    """Whether the harness leaves nothing, or no more than it differs itself from its first quartile to its third."""
    low, _, high = statistics.quantiles(floors.values(), n=4, method="inclusive") if len(floors) > 1 else (0, 0, 0)
    return min(net.values()) <= 0 or statistics.median(net.values()) <= high - low


def _floors(trials: Trials, family: Family) -> dict[float, float]:
    found = {}
    for workload, at in family.members.items():
        said = [record.figures or {} for record in trials.of([workload])]
        floors = [each[FLOOR] / each[OPERATIONS] for each in said if each.get(FLOOR, 0) > 0]
        if floors:
            found[at] = statistics.median(floors)
    return found


def _of_figure(trials: Trials, summary: Summary, workload: str, head: str, values: Sequence[str]) -> Series:
    places, labels, is_words = _places("size", values)
    if is_words:
        labels = {at: re.sub(r"^p([0-9.]+)$", r"\1 %", words) for at, words in labels.items()}
    lines: dict[str, Line] = {}
    floor: dict[float, float] = {}
    for value, at in sorted(places.items(), key=lambda item: item[1]):
        for name in trials.configurations:
            told = trials.values(workload, name, f"{FIGURE}{head}/{value}")
            found = point({number: each * 1e-9 for number, each in told.items() if each > 0})
            if found is not None:
                lines.setdefault(name, {})[at] = found
        said = [record.figures or {} for record in trials.of([workload])]
        floors = [each.get(f"nothing_ns/{value}", each.get("floor_ns", 0)) for each in said]
        if any(floors):
            floor[at] = statistics.median(floors) * 1e-9
    deed = head.removesuffix("_ns")
    parameter = "percentile" if is_words else "size"
    step = next((each for record in trials.of([workload]) if (each := (record.figures or {}).get("clock_step_ns"))), 0)
    told_step = f"the clock has steps of {step:.3g} ns; " if step else ""
    meaning = _MEANINGS.get(deed, deed.replace("_", " "))
    return Series(
        f"{deed.replace('_', ' ')} by {parameter}",
        workload,
        parameter,
        "time",
        labels,
        {name: lines[name] for name in trials.configurations if name in lines},
        f"Time of {meaning}; {told_step}medians",
        is_words,
        floor=floor,
        left_out=left_out(summary, [workload]),
    )
