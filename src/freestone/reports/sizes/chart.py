"""The cost of a block by its size drawn: logarithmic bars, a panel for each configuration."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import altair as alt

from freestone.records.schema import Experiment, Summary, TrialRecord
from freestone.reports.numerals import bytes_in_words
from freestone.reports.pieces import Rows, coloured, inline, layered
from freestone.reports.shown import counting, order_of
from freestone.reports.sizes.data import Bar, Course, bars

HEIGHT = 150
"""Of a panel, pixels."""
COLUMNS = 3
"""Panels in a row where they stand in one chart."""
LABELS = 5
"""Sizes that are named on an axis, about."""

_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))


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
    mine = counting(summary, records, [workload])
    every = {
        name: found for name in order_of(experiment, summary, workload) if (found := bars(mine, workload, name, course))
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
