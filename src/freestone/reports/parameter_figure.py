"""A metric against a parameter drawn: a line for each configuration, each trial, and the values of others beside it."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import altair as alt

from freestone.records.schema import Experiment
from freestone.reports import placing, ticks
from freestone.reports.drawn import Figure
from freestone.reports.parameter_series import Series
from freestone.reports.parameter_table import NO_ALLOCATOR, caption, cell, published_name, table, title
from freestone.reports.pieces import Rows, coloured, dashed, inline, layered, shaped
from freestone.reports.vega import document

HEIGHT = 260
LINE = 14
"""Pixels from one name to the next."""
DOT = 7
"""Size of a trial's dot, square pixels."""
LETTER = 6.2
LEADER = 0.065
"""Share of the axis from the last value to the names: its trials stand there."""
NARROWEST = 300
"""Pixels: of a letter of a name, of the plot on the narrowest page with figures side by side."""
STEEP = 3
"""An axis is logarithmic from this quotient of its largest and its smallest value on; below, it has its zero."""


def figure(experiment: Experiment, series: Series) -> Figure:
    """The figure with its words and its numbers."""
    said = "; ".join(
        f"{name} from {cell(series, ends[0])} to {cell(series, ends[-1])}"
        for name, line in series.lines.items()
        for ends in (list(line.values()),)
    )
    return Figure(
        title(series),
        caption(series),
        f"{title(series)} under {series.subject} by {series.parameter}: {said}.",
        document(draw(experiment, series)),
        table(series),
    )


def draw(experiment: Experiment, series: Series) -> alt.LayerChart:
    """The lines, named at their ends, and each trial as a dot beside its value, later rounds farther right.

    A line stops at a value without a result and goes on behind it.
    """
    ours = {name: [*line.items()][-1] for name, line in series.lines.items()}
    spots = {name: (at, point.value) for name, (at, point) in ours.items()}
    spots |= {published_name(name): [*line.items()][-1] for name, line in series.published.items()}
    right = min(0.5, 0.03 + LEADER + LETTER * max(map(len, spots)) / NARROWEST)
    across, up = _across(series, right), _up(series)
    height = max(HEIGHT, LINE * (len(spots) + 1))
    names = _names(spots, up, across.at(1 + LEADER - right), height)
    colour, dash, shape = coloured(experiment), dashed(experiment), shaped(experiment)
    x, y, data = across.x("at"), up.y("value"), inline(_rows(series, across))
    named, others = (inline([row for row in names if (row["configuration"] in ours) == each]) for each in (True, False))
    leader = {"x": x, "x2": alt.X2("name_at:Q"), "y": y, "y2": alt.Y2("place:Q")}
    tooltip = [
        alt.Tooltip("configuration:N"),
        alt.Tooltip("number:N", title=series.parameter),
        alt.Tooltip("text:N", title=series.title),
    ]
    marks = [
        alt.Chart(data, transform=[alt.FlattenTransform(flatten=["trial", "beside"])])
        .mark_point(size=DOT, filled=True, opacity=0.5)
        .encode(x=across.x("beside"), y=up.y("trial"), color=colour, shape=shape),
        alt.Chart(data)
        .mark_rule(strokeWidth=5, opacity=0.28)
        .encode(x=x, y=up.y("low"), y2=alt.Y2("high:Q"), color=colour),
        alt.Chart(data)
        .mark_line(strokeWidth=1.5)
        .encode(x=x, y=y, color=colour, strokeDash=dash, detail=alt.Detail("run:N")),
        alt.Chart(data)
        .mark_point(size=26, filled=True, opacity=1)
        .encode(x=x, y=y, color=colour, shape=shape, tooltip=tooltip),
        alt.Chart(named).mark_rule(strokeWidth=0.8, opacity=0.6).encode(color=colour, **leader),
        alt.Chart(named)
        .mark_point(size=26, filled=True, opacity=1)
        .encode(x=across.x("name_at"), y=up.y("place"), color=colour, shape=shape),
        alt.Chart(inline(names))
        .mark_text(style="label", align="left", dx=7, fontSize=11)
        .encode(x=across.x("name_at"), y=up.y("place"), text=alt.Text("configuration:N")),
    ]
    if series.reference:
        one: Rows = [{"value": 1.0, "at": min(series.labels), "to": max(series.labels)}]
        marks.append(alt.Chart(inline(one)).mark_rule().encode(x=x, x2=alt.X2("to:Q"), y=y))
    if series.published:
        there = alt.Chart(inline(_values(series.published)))
        marks += [
            there.mark_line(style="label", strokeWidth=1, strokeDash=[2, 3], opacity=0.7).encode(
                x=x, y=y, detail=alt.Detail("name:N")
            ),
            there.mark_point(shape="diamond", size=45, stroke="gray", filled=False).encode(
                x=x, y=y, tooltip=[alt.Tooltip("name:N"), alt.Tooltip("value:Q", title=series.title, format=".3~g")]
            ),
            alt.Chart(others).mark_rule(strokeWidth=0.8, opacity=0.6).encode(**leader),
        ]
    if series.floor:
        floor = alt.Chart(
            inline(_values({NO_ALLOCATOR: {at: value for at, value in series.floor.items() if value > 0}}))
        )
        dotted = floor.mark_line(style="label", strokeWidth=1, strokeDash=[1, 3], opacity=0.8)
        marks.append(dotted.encode(x=x, y=y))
    return layered(*marks, height=height)


def _rows(series: Series, across: _Scale) -> Rows:
    """A row for each point, with its trials in lists, since the page holds thousands of them: Vega makes a row of each.

    Neighbours have the same ``run``.
    """
    places = {at: place for place, at in enumerate(series.labels)}
    return [
        {
            "configuration": name,
            "at": at,
            "value": point.value,
            "low": point.low,
            "high": point.high,
            "number": series.labels[at],
            "text": cell(series, point),
            "trial": [float(f"{value:.4g}") for value in point.trials],
            "beside": [float(f"{place:.5g}") for place in across.beside(at, len(point.trials))],
            "run": places[at] - index,
        }
        for name, line in series.lines.items()
        for index, (at, point) in enumerate(line.items())
    ]


def _values(lines: Mapping[str, Mapping[float, float]]) -> Rows:
    return [{"name": name, "at": at, "value": value} for name, line in lines.items() for at, value in line.items()]


@dataclass(frozen=True)
class _Scale:
    """One axis of the figure, with the labels it has."""

    title: str | None
    low: float
    high: float
    is_log: bool
    labels: Mapping[float, str]
    beside_from: float = 0
    beside_to: float = 0
    """Shares of the axis to the right of a value, between which its trials stand."""

    def at(self, share: float) -> float:
        """The value at a share of the axis from its low end."""
        if self.is_log:
            return self.low * math.exp(share * math.log(self.high / self.low))
        return self.low + share * (self.high - self.low)

    def share(self, value: float) -> float:
        """Where a value stands, from 0 at the low end to 1."""
        if self.is_log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def beside(self, value: float, trials: int) -> list[float]:
        """Where the trials of a value stand, in the order of their rounds."""
        start, reach = self.share(value) + self.beside_from, self.beside_to - self.beside_from
        return [self.at(start + reach * (index + 0.5) / trials) for index in range(trials)]

    def scale(self) -> alt.Scale:
        domain = [self.low, self.high]
        if self.is_log:
            return alt.Scale(type="log", domain=domain, nice=False)
        return alt.Scale(domain=domain, nice=False, zero=False)

    def axis(self, *, grid: bool) -> alt.Axis:
        # By nearness: Vega may change the last digit of a value.
        named = "".join(
            f"abs(datum.value - {value!r}) <= {abs(value) * 1e-6!r} ? {json.dumps(words.split(', '))} : "
            for value, words in self.labels.items()
        )
        values = list(self.labels)
        return alt.Axis(
            values=values,
            tickCount=len(values),
            labelExpr=f"{named}''",
            grid=grid,
            labelOverlap="greedy",
            labelSeparation=8,
            labelFlush=False,
        )

    def x(self, field: str) -> alt.X:
        return alt.X(f"{field}:Q", title=self.title, scale=self.scale(), axis=self.axis(grid=False))

    def y(self, field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", title=self.title, scale=self.scale(), axis=self.axis(grid=True))


def _across(series: Series, right: float) -> _Scale:
    """The parameter's values, and the share ``right`` of the axis for the names."""
    places = list(series.labels)
    low, high = places[0], places[-1]
    if low == high:
        high = low + 1
    is_log = low > 0 and high / low >= STEEP and not series.is_words
    ends = (-0.02, 1.02 / (1 - right) - 0.02)
    if is_log:
        start, end = (low * (high / low) ** share for share in ends)
    else:
        start, end = (low + share * (high - low) for share in ends)
    scale = _Scale(series.parameter, start, end, is_log, series.labels)
    steps = [scale.share(two) - scale.share(one) for one, two in itertools.pairwise(places)]
    nearest = min(steps, default=1.0)
    return replace(scale, beside_from=min(0.012, nearest / 8), beside_to=min(0.036, nearest * 3 / 8))


def _up(series: Series) -> _Scale:
    points = [point for line in series.lines.values() for point in line.values()]
    values = [value for point in points for value in (point.low, point.high, *point.trials)]
    values += [value for line in series.published.values() for value in line.values()]
    values += [value for value in series.floor.values() if value > 0]
    values += [1.0] if series.reference else []
    low, high = min(values), max(values)
    if low > 0 and high / low >= STEEP:
        low, high = low / 1.15, high * 1.15
        marks = ticks.logarithmic(series.kind, low, high)
        return _Scale(None, low, high, True, {value: ticks.text(series.kind, value) for value in marks})
    high = max(high, 0) * 1.06 or 1.0
    marks = ticks.linear(series.kind, high)
    return _Scale(None, 0.0, high, False, {value: ticks.text(series.kind, value) for value in marks})


def _names(last: Mapping[str, tuple[float, float]], up: _Scale, right: float, height: float) -> Rows:
    """A row for each name: where its line ends, and where it stands so that it covers no other."""
    spots = [(1 - up.share(value)) * height for _, value in last.values()]
    return [
        {"configuration": name, "at": at, "value": value, "name_at": right, "place": up.at(1 - place / height)}
        for (name, (at, value)), place in zip(last.items(), placing.spread(spots, LINE, height), strict=True)
    ]
