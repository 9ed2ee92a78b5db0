"""What a block costs by its size: logarithmic bars, a panel for each configuration.

Drawn for any workload that says nanoseconds by what is done and by size in bytes, as ``sizes-benchmark`` does:
``malloc_ns/64``.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import altair as alt

from freestone.records.schema import Experiment, Summary, TrialRecord
from freestone.reports import figures
from freestone.reports.pieces import Rows, coloured, inline, layered

HEIGHT = 150
"""Of a panel, pixels."""
COLUMNS = 3
"""Panels in a row where they stand in one chart."""
LABELS = 5
"""Sizes that are named on an axis, about."""

_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


@dataclass(frozen=True)
class Course:
    """What is done to the blocks of one figure."""

    title: str
    deed: str
    """What the dark bar costs: the program's figure is ``DEED_ns/SIZE``."""
    whole: str | None = None
    """What the dark and the light bar cost together."""
    meaning: str = ""


COURSES = (
    Course("malloc and free, by size", "malloc", "malloc_free", "malloc, and malloc with free"),
    Course("calloc, by size", "calloc", None, "calloc alone; the blocks are freed off the clock"),
    Course("Every page touched, by size", "touch", None, "malloc and one byte written in every page"),
    Course("Every byte written, by size", "memset", None, "malloc and memset of the whole block"),
)


@dataclass(frozen=True)
class Bar:
    """Medians over trials, nanoseconds a block."""

    size: int
    deed: float
    whole: float | None
    low: float
    high: float
    """The smallest and the largest trial of the whole; of the deed where there is nothing more."""

    @property
    def top(self) -> float:
        """What everything on the clock costs."""
        return self.deed if self.whole is None else self.whole


def courses(records: Iterable[TrialRecord], workload: str) -> list[Course]:
    """The courses of which a workload says something; none for most workloads."""
    names = {
        name.partition("/")[0]
        for record in records
        if record.workload == workload and record.status == "ok"
        for name in record.figures or ()
        if _size(name) is not None
    }
    return [course for course in COURSES if f"{course.deed}_ns" in names]


def bars(records: Iterable[TrialRecord], workload: str, configuration: str, course: Course) -> list[Bar]:
    """One bar for each size of which a trial that counts says what it costs, in ascending order.

    What is not above zero has no place on a logarithmic axis and is left out.
    """
    deed: dict[int, list[float]] = {}
    whole: dict[int, list[float]] = {}
    for record in records:
        mine = (record.workload, record.configuration, record.repeat) == (workload, configuration, 0)
        if not mine or record.status != "ok":
            continue
        for name, value in (record.figures or {}).items():
            size = _size(name)
            head = name.partition("/")[0]
            if size is not None and value > 0:
                if head == f"{course.deed}_ns":
                    deed.setdefault(size, []).append(value)
                elif head == f"{course.whole}_ns":
                    whole.setdefault(size, []).append(value)
    found = []
    for size in sorted(deed):
        trials = whole.get(size) or deed[size]
        together = statistics.median(whole[size]) if size in whole else None
        found.append(Bar(size, statistics.median(deed[size]), together, min(trials), max(trials)))
    return found


def base(values: Iterable[float]) -> float:
    """Where the bars stand: the power of ten at or below the least value, 1 where there is none.

    A logarithmic axis has no zero, so the foot of a bar means nothing by itself; it only has to be the same everywhere.
    """
    least = min(values, default=1.0)
    power: float = 10.0 ** math.floor(math.log10(least))
    return power if power <= least else power / 10


def panels(
    experiment: Experiment, summary: Summary, records: Sequence[TrialRecord], workload: str, course: Course
) -> dict[str, alt.LayerChart]:
    """A chart for each configuration that has a result, all with the same axes, in the order of the report.

    The thin line is the top of the baseline's bars.
    """
    every = {
        name: found
        for name in figures.order_of(experiment, summary, workload)
        if (found := bars(records, workload, name, course))
    }
    sizes = sorted({bar.size for found in every.values() for bar in found})
    values = [value for found in every.values() for bar in found for value in (bar.deed, bar.low, bar.high)]
    foot = base(values)
    domain = [foot, max(values, default=foot * 10) * 1.25]
    return {name: _panel(experiment, summary, every, name, sizes, domain) for name in every}


def draw(
    experiment: Experiment, summary: Summary, records: Sequence[TrialRecord], workload: str, course: Course
) -> alt.ConcatChart | None:
    """All panels of a course as one chart of fixed size; None where no configuration has a result."""
    found = panels(experiment, summary, records, workload, course)
    titled = [chart.properties(title=name, width=260) for name, chart in found.items()]
    return alt.concat(*titled, columns=COLUMNS, spacing=28) if titled else None


def bytes_in_words(size: int) -> str:
    """``8 B``, ``64 KiB``, ``1 GiB``."""
    step, unit = next(((step, unit) for step, unit in _UNITS if size >= step), (1, "B"))
    return f"{size / step:g} {unit}"


def nanoseconds(value: float) -> str:
    """A power of ten as an axis names it: ``100 ns``, ``10 µs``, ``1 s``."""
    step, unit = next(((step, unit) for step, unit in _TIMES if value >= step), (1.0, "ns"))
    return f"{value / step:g} {unit}"


def _panel(
    experiment: Experiment,
    summary: Summary,
    every: Mapping[str, Sequence[Bar]],
    name: str,
    sizes: Sequence[int],
    domain: Sequence[float],
) -> alt.LayerChart:
    rows: Rows = [
        {
            "configuration": name,
            "size": bar.size,
            "words": bytes_in_words(bar.size),
            "foot": domain[0],
            "deed": bar.deed,
            "top": bar.top,
            "low": bar.low,
            "high": bar.high,
        }
        for bar in every[name]
    ]
    behind: Rows = [
        {"configuration": summary.baseline, "size": bar.size, "top": bar.top} for bar in every.get(summary.baseline, ())
    ]
    x, colour = _across(sizes), coloured(experiment)
    tooltip = [
        alt.Tooltip("words:N", title="size"),
        alt.Tooltip("deed:Q", title="dark, ns", format=",.4~g"),
        alt.Tooltip("top:Q", title="whole, ns", format=",.4~g"),
    ]
    marks = [
        alt.Chart(inline(rows))
        .mark_bar()
        .encode(x=x, y=_up("deed", domain), y2=alt.Y2("foot:Q"), color=colour, tooltip=tooltip),
        alt.Chart(inline([row for row in rows if row["top"] > row["deed"]]))
        .mark_bar(opacity=0.38)
        .encode(x=x, y=_up("top", domain), y2=alt.Y2("deed:Q"), color=colour, tooltip=tooltip),
        alt.Chart(inline([row for row in rows if row["top"] < row["deed"]]))
        .mark_tick(style="label", thickness=1.6)
        .encode(x=x, y=_up("top", domain), tooltip=tooltip),
        alt.Chart(inline([row for row in rows if row["low"] < row["high"]]))
        .mark_rule(style="label", strokeWidth=0.9, opacity=0.7)
        .encode(x=x, y=_up("low", domain), y2=alt.Y2("high:Q")),
    ]
    if name != summary.baseline and behind:
        line = alt.Chart(inline(behind)).mark_line(strokeWidth=1.1, interpolate="step")
        marks.append(line.encode(x=x, y=_up("top", domain), color=colour))
    return layered(*marks, height=HEIGHT)


def _across(sizes: Sequence[int]) -> alt.X:
    named = list(sizes[:: max(1, math.ceil(len(sizes) / LABELS))])
    words = {size: bytes_in_words(size) for size in named}
    axis = alt.Axis(values=named, labelExpr=f"({words})[datum.value]", labelAngle=0, labelOverlap=True)
    return alt.X("size:O", title=None, axis=axis, scale=alt.Scale(domain=list(sizes), paddingInner=0.12))


def _up(field: str, domain: Sequence[float]) -> alt.Y:
    low, high = (math.floor(math.log10(value)) for value in domain)
    every = 3 if high - low > 3 else 1
    powers = range(low, high + 1)
    words = {power: nanoseconds(10.0**power) for power in powers if power % every == 0}
    label = f"({words})[round(log(datum.value) / LN10)] || ''"
    values = [10.0**power for power in powers]
    # Without a count of its own, Vega leaves out every other line of a logarithmic axis.
    axis = alt.Axis(values=values, tickCount=len(values), grid=True, labelExpr=label)
    return alt.Y(f"{field}:Q", title=None, scale=alt.Scale(type="log", domain=list(domain), nice=False), axis=axis)


def _size(figure: str) -> int | None:
    head, _, case = figure.partition("/")
    return int(case) if head.endswith("_ns") and case.isascii() and case.isdecimal() and int(case) > 0 else None
