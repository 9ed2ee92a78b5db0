"""The latency of single calls drawn: a line for each configuration."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt

from freestone.records.schema import Experiment, Summary, TrialRecord
from freestone.reports import placing, ticks
from freestone.reports.pieces import Rows, coloured, dashed, inline, layered
from freestone.reports.shown import counting
from freestone.reports.tails.data import DEEDS, NOTHING, Point, course_of, courses, one_in

HEIGHT = 300
LINE = 14
"""Pixels from one name to the next."""
LETTER = 6.2
NARROWEST = 340
"""Pixels: of a letter of a name, of the plot on the narrowest page with figures side by side."""
LEADER = 0.06
"""Share of the axis from the last call to the names."""


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
        for point in course_of(counting(summary, records, [workload]), workload, None, NOTHING)
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
        for (name, point), place in zip(last.items(), placing.spread(spots, LINE, height), strict=True)
    ]


def _text(point: Point) -> str:
    return ticks.brief("time", point.ns * 1e-9)
