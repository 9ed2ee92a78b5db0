"""A quantity against a number drawn: a line for each configuration, and every trial beside it."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import altair as alt

from freestone.records.schema import Experiment, Summary, TrialRecord
from freestone.reports import placing, ticks
from freestone.reports.families import Family
from freestone.reports.pieces import Rows, coloured, dashed, inline, layered, shaped
from freestone.reports.scaling.data import Measure, Point, kind_of, lines, number_in_words, quantity_title

HEIGHT = 260
LINE = 14
"""Pixels from one name to the next."""
DOT = 7
"""Size of a trial's dot, square pixels."""
LETTER = 6.2
LEADER = 0.065
"""Share of the axis from the last number to the names: its trials stand there."""
NARROWEST = 300
"""Pixels: of a letter of a name, of the plot on the narrowest page with figures side by side."""
STEEP = 3
"""From the smallest value to one so many times as large, an axis is linear and has its zero."""


def draw(
    experiment: Experiment, summary: Summary, records: Sequence[TrialRecord], family: Family, measure: Measure
) -> alt.LayerChart | None:
    """The lines, named where they end, and every trial as a dot beside its median, later rounds farther right.

    A line stops at a number without a result and goes on behind it. None where no configuration has two points. Both
    axes are logarithmic where what they show reaches from one to several times as much.
    """
    found = lines(experiment, summary, records, family, measure)
    if not any(len(points) > 1 for points in found.values()):
        return None
    right = min(0.5, 0.03 + LEADER + LETTER * max(len(name) for name in found) / NARROWEST)
    across, up = _across(family, right), _up(measure, found)
    runs = {name: _runs(points, [member.at for member in family.members]) for name, points in found.items()}
    has_gaps = any(len(parts) > 1 for parts in runs.values())
    rows: Rows = [
        {
            "configuration": name,
            "at": point.at,
            "value": point.median,
            "low": point.low,
            "high": point.high,
            "number": number_in_words(family, point.at),
            "text": ticks.brief(kind_of(measure), point.median),
            # In lists, since the page holds thousands of them; Vega makes a row of each.
            "trial": [float(f"{value:.4g}") for value in point.trials],
            "beside": [float(f"{place:.5g}") for place in across.beside(point.at, len(point.trials))],
            **({"run": run} if has_gaps else {}),
        }
        for name, points in found.items()
        for run, part in enumerate(runs[name])
        for point in part
    ]
    height = max(HEIGHT, LINE * (len(found) + 1))
    last = {name: points[-1] for name, points in found.items()}
    places = _names(last, up, across.at(1 + LEADER - right), height)
    colour, dash, shape = coloured(experiment), dashed(experiment), shaped(experiment)
    tooltip = [
        alt.Tooltip("configuration:N"),
        alt.Tooltip("number:N", title=family.axis),
        alt.Tooltip("text:N", title=quantity_title(measure)),
    ]
    detail = {"detail": alt.Detail("run:N")} if has_gaps else {}
    data = inline(rows)
    return layered(
        alt.Chart(data, transform=[alt.FlattenTransform(flatten=["trial", "beside"])])
        .mark_point(size=DOT, filled=True, opacity=0.5)
        .encode(x=across.of("beside"), y=up.of("trial"), color=colour, shape=shape),
        alt.Chart(data)
        .mark_rule(strokeWidth=5, opacity=0.28)
        .encode(x=across.of("at"), y=up.of("low"), y2=alt.Y2("high:Q"), color=colour),
        alt.Chart(data)
        .mark_line(strokeWidth=1.5)
        .encode(x=across.of("at"), y=up.of("value"), color=colour, strokeDash=dash, **detail),
        alt.Chart(data)
        .mark_point(size=26, filled=True, opacity=1)
        .encode(x=across.of("at"), y=up.of("value"), color=colour, shape=shape, tooltip=tooltip),
        alt.Chart(inline(places))
        .mark_rule(strokeWidth=0.8, opacity=0.6)
        .encode(x=across.of("at"), x2=alt.X2("name_at:Q"), y=up.of("value"), y2=alt.Y2("place:Q"), color=colour),
        alt.Chart(inline(places))
        .mark_point(size=26, filled=True, opacity=1)
        .encode(x=across.of("name_at"), y=up.of("place"), color=colour, shape=shape),
        alt.Chart(inline(places))
        .mark_text(style="label", align="left", dx=7, fontSize=11)
        .encode(x=across.of("name_at"), y=up.of("place"), text=alt.Text("configuration:N")),
        height=height,
    )


def _runs(points: Sequence[Point], numbers: Sequence[int]) -> list[list[Point]]:
    """The points of a line in parts, each of neighbours among the numbers."""
    place = {number: index for index, number in enumerate(numbers)}
    parts: list[list[Point]] = []
    for point in points:
        if parts and place[point.at] == place[parts[-1][-1].at] + 1:
            parts[-1].append(point)
        else:
            parts.append([point])
    return parts


@dataclass(frozen=True)
class _Scale:
    """One axis of the figure, with the labels it has."""

    title: str | None
    low: float
    high: float
    is_log: bool
    labels: Mapping[float, str]

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

    def scale(self) -> alt.Scale:
        domain = [self.low, self.high]
        if self.is_log:
            return alt.Scale(type="log", domain=domain, nice=False)
        return alt.Scale(domain=domain, nice=False, zero=False)

    def axis(self, *, grid: bool) -> alt.Axis:
        # By nearness: what Vega hands back may differ from what it was given in the last digit.
        named = "".join(
            f"abs(datum.value - {value!r}) <= {abs(value) * 1e-6!r} ? {json.dumps(words)} : "
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


@dataclass(frozen=True)
class _Across(_Scale):
    beside_from: float
    beside_to: float
    """Shares of the axis to the right of a number, between which its trials stand."""

    def beside(self, number: float, trials: int) -> list[float]:
        """Where the trials of a number stand, in the order of their rounds."""
        start, reach = self.share(number) + self.beside_from, self.beside_to - self.beside_from
        return [self.at(start + reach * (index + 0.5) / trials) for index in range(trials)]

    def of(self, field: str) -> alt.X:
        return alt.X(f"{field}:Q", title=self.title, scale=self.scale(), axis=self.axis(grid=False))


@dataclass(frozen=True)
class _Up(_Scale):
    def of(self, field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", title=None, scale=self.scale(), axis=self.axis(grid=True))


def _across(family: Family, right: float) -> _Across:
    """The members' numbers, and the share ``right`` of the axis for the names."""
    numbers = [member.at for member in family.members]
    low, high = numbers[0], numbers[-1]
    is_log = low > 0 and high / low >= STEEP
    ends = (-0.02, 1.02 / (1 - right) - 0.02)
    if is_log:
        start, end = (low * (high / low) ** share for share in ends)
    else:
        start, end = (low + share * (high - low) for share in ends)
    labels = {float(number): number_in_words(family, number) for number in numbers}
    scale = _Across(family.axis, start, end, is_log, labels, 0, 0)
    nearest = min(scale.share(two) - scale.share(one) for one, two in itertools.pairwise(numbers))
    return replace(scale, beside_from=min(0.012, nearest / 8), beside_to=min(0.036, nearest * 3 / 8))


def _up(measure: Measure, found: Mapping[str, Sequence[Point]]) -> _Up:
    trials = [value for points in found.values() for point in points for value in point.trials]
    low, high = min(trials), max(trials)
    kind = kind_of(measure)
    if low > 0 and high / low >= STEEP:
        low, high = low / 1.15, high * 1.15
        values = ticks.logarithmic(kind, low, high)
        return _Up(None, low, high, True, {value: ticks.text(kind, value) for value in values})
    high = high * 1.06 or 1.0
    values = ticks.linear(kind, high)
    return _Up(None, 0.0, high, False, {value: ticks.text(kind, value) for value in values})


def _names(last: Mapping[str, Point], up: _Up, right: float, height: float) -> Rows:
    """A row for each name: where its line ends, and where it stands so that it covers no other."""
    spots = [(1 - up.share(point.median)) * height for point in last.values()]
    return [
        {
            "configuration": name,
            "at": point.at,
            "value": point.median,
            "name_at": right,
            "place": up.at(1 - place / height),
        }
        for (name, point), place in zip(last.items(), placing.spread(spots, LINE, height), strict=True)
    ]
