"""How long single calls of malloc and free take: which share of them is slower than so many nanoseconds.

Drawn for any workload that tells a histogram of its calls, as ``tails`` does: ``malloc_calls/64`` calls took less than
64 ns, and no less than the bucket before ends at.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import altair as alt

from freestone.records.schema import HISTOGRAM, Experiment, Summary, TrialRecord
from freestone.reports import figures, ticks
from freestone.reports.pieces import Rows, coloured, dashed, inline, layered
from freestone.reports.scaling import spread

DEEDS = ("malloc_and_write", "malloc", "free")
"""malloc with the first write of its block; the bare call, in which some touch the block and some do not; free."""

NOTHING = "nothing"
"""What stands in a histogram where a call would: two looks at the clock, and what the machine does between them."""

HEIGHT = 300
LINE = 14
"""Pixels from one name to the next."""
LETTER = 6.2
NARROWEST = 340
"""Pixels: of a letter of a name, of the plot on the narrowest page with figures side by side."""
LEADER = 0.06
"""Share of the axis from the last call to the names."""

Histogram = Mapping[int, int]
"""Calls by where their bucket ends, in nanoseconds."""


@dataclass(frozen=True)
class Point:
    """So large a share of the calls took ``ns`` or longer."""

    ns: int
    share: float


def histogram(records: Iterable[TrialRecord], workload: str, configuration: str | None, deed: str) -> dict[int, int]:
    """The calls of all trials that count, of one configuration or of all of them."""
    calls: Counter[int] = Counter()
    for record in records:
        if not _counts(record, workload, configuration):
            continue
        for name, value in (record.figures or {}).items():
            head, _, end = name.partition(HISTOGRAM)
            if head == deed and end.isascii() and end.isdecimal() and int(end) > 0 and value >= 1:
                calls[int(end)] += round(value)
    return dict(sorted(calls.items()))


def values(records: Iterable[TrialRecord], workload: str, configuration: str | None, figure: str) -> list[float]:
    """A figure in all trials that count, of one configuration or of all of them."""
    return [
        value
        for record in records
        if _counts(record, workload, configuration) and (value := (record.figures or {}).get(figure)) is not None
    ]


def _counts(record: TrialRecord, workload: str, configuration: str | None) -> bool:
    mine = record.workload == workload and configuration in (None, record.configuration)
    return mine and record.status == "ok" and not record.repeat


def course(calls: Histogram, longest: float | None = None) -> list[Point]:
    """From the fastest calls to the slowest; the last two points are the bucket that holds the longest call.

    Args:
        longest: how long that took, in nanoseconds; None where it is not told: then its bucket's end stands for it.
    """
    whole = left = sum(calls.values())
    points: list[Point] = []
    for end in sorted(calls):
        before, left = left, left - calls[end]
        points.append(Point(end, (left or before) / whole))
    if points and longest is not None:
        least = points[-2].ns if len(points) > 1 else 1
        points[-1] = Point(min(points[-1].ns, max(least, round(longest))), points[-1].share)
    return points


def _course(records: Sequence[TrialRecord], workload: str, configuration: str | None, deed: str) -> list[Point]:
    calls = histogram(records, workload, configuration, deed)
    return course(calls, max(values(records, workload, configuration, f"{deed}_ns/longest"), default=None))


def courses(
    experiment: Experiment, summary: Summary, records: Sequence[TrialRecord], workload: str, deed: str
) -> dict[str, list[Point]]:
    """Of each configuration that tells something, in the order of the report; empty for most workloads."""
    return {
        name: line
        for name in figures.order_of(experiment, summary, workload)
        if (line := _course(records, workload, name, deed))
    }


def draw(
    experiment: Experiment, summary: Summary, records: Sequence[TrialRecord], workload: str, deed: str
) -> alt.LayerChart | None:
    """A line for each configuration, named where it ends; both axes are logarithmic. None where nothing is told.

    The dotted line without a name is what the clock says of no call at all.
    """
    found = courses(experiment, summary, records, workload, deed)
    if not found:
        return None
    # Malloc and free of a workload are held against each other, and so have the same axes.
    every = [found, *(courses(experiment, summary, records, workload, other) for other in DEEDS if other != deed)]
    points = [point for each in every for line in each.values() for point in line]
    low, high = min(point.ns for point in points), max(point.ns for point in points)
    least = min(point.share for point in points) / 1.5
    right = min(0.5, 0.03 + LEADER + LETTER * max(len(name) for name in found) / NARROWEST)
    across = _across(low, max(high, 2 * low), right)
    height = max(HEIGHT, LINE * (len(found) + 1))
    rows: Rows = [
        {
            "configuration": name,
            "ns": point.ns,
            "share": point.share,
            "words": one_in(point.share),
            "text": _text(point),
        }
        for name, line in found.items()
        for point in line
    ]
    nothing: Rows = [
        {"ns": point.ns, "share": point.share}
        for point in _course(records, workload, None, NOTHING)
        if low <= point.ns <= high and point.share >= least
    ]
    names = _names({name: line[-1] for name, line in found.items()}, least, height, across.place(1 + LEADER))
    colour, dash = coloured(experiment), dashed(experiment)
    tooltip = [
        alt.Tooltip("configuration:N"),
        alt.Tooltip("text:N", title="as long or longer"),
        alt.Tooltip("words:N", title="calls"),
    ]
    data = inline(rows)
    return layered(
        alt.Chart(inline(nothing))
        .mark_line(style="label", strokeWidth=1, strokeDash=[1, 3], opacity=0.8, interpolate="step-after")
        .encode(x=across.of("ns"), y=_up("share", least)),
        alt.Chart(data)
        .mark_line(strokeWidth=1.5, interpolate="step-after")
        .encode(x=across.of("ns"), y=_up("share", least), color=colour, strokeDash=dash),
        alt.Chart(data)
        .mark_point(size=12, filled=True, opacity=0.9)
        .encode(x=across.of("ns"), y=_up("share", least), color=colour, tooltip=tooltip),
        alt.Chart(inline(names))
        .mark_rule(strokeWidth=0.8, opacity=0.6)
        .encode(x=across.of("ns"), x2=alt.X2("name_at:Q"), y=_up("share", least), y2=alt.Y2("place:Q"), color=colour),
        alt.Chart(inline(names))
        .mark_text(style="label", align="left", dx=4, fontSize=11)
        .encode(x=across.of("name_at"), y=_up("place", least), text=alt.Text("configuration:N")),
        height=height,
    )


def one_in(share: float) -> str:
    """A share as people say it: ``all``, ``1 in 10``, ``1 in 2,500``."""
    return "all" if share >= 0.9995 else f"1 in {float(f'{1 / share:.3g}'):,.10g}"


@dataclass(frozen=True)
class _Across:
    """The axis of nanoseconds, with room for the names on its right."""

    low: float
    high: float
    end: float

    def place(self, share: float) -> float:
        """The value at a share of the way from the lowest to the highest call; above 1 it is where the names are."""
        return float(self.low * (self.high / self.low) ** share)

    def of(self, field: str) -> alt.X:
        values = ticks.logarithmic("time", self.low * 1e-9, self.high * 1e-9)
        words = {round(math.log10(value * 1e9) * 1000): ticks.text("time", value) for value in values}
        label = f"({words})[round(log(datum.value) / LN10 * 1000)] || ''"
        axis = alt.Axis(values=[value * 1e9 for value in values], tickCount=len(values), grid=False, labelExpr=label)
        scale = alt.Scale(type="log", domain=[self.low, self.end], nice=False)
        return alt.X(f"{field}:Q", title=None, scale=scale, axis=axis)


def _across(low: float, high: float, right: float) -> _Across:
    return _Across(low, high, low * (high / low) ** (1 / (1 - right)))


def _up(field: str, least: float) -> alt.Y:
    powers = range(math.ceil(math.log10(least)), 1)
    words = {-power: one_in(10.0**power) for power in powers}
    label = f"({words})[round(-log(datum.value) / LN10)] || ''"
    values = [10.0**power for power in powers]
    axis = alt.Axis(values=values, tickCount=len(values), grid=True, labelExpr=label)
    return alt.Y(f"{field}:Q", title=None, scale=alt.Scale(type="log", domain=[least, 1], nice=False), axis=axis)


def _names(last: Mapping[str, Point], least: float, height: float, name_at: float) -> Rows:
    """A row for each name: where its line ends, and where it stands so that it covers no other."""
    whole = -math.log(least)
    # Of lines that end at one height the longest comes first, so that its leader crosses no other.
    last = dict(sorted(last.items(), key=lambda item: -item[1].ns))
    spots = [-math.log(point.share) / whole * height for point in last.values()]
    return [
        {
            "configuration": name,
            "ns": point.ns,
            "share": point.share,
            "name_at": name_at,
            "place": math.exp(-place / height * whole),
        }
        for (name, point), place in zip(last.items(), spread(spots, LINE, height), strict=True)
    ]


def _text(point: Point) -> str:
    return ticks.brief("time", point.ns * 1e-9)
