"""Time against memory, both as ratios to the baseline."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

import altair as alt

from freestone.records.schema import Experiment, Ratio, Summary
from freestone.reports import placing, quantities, ticks
from freestone.reports.figures import axes
from freestone.reports.figures.axes import Axis
from freestone.reports.pieces import Rows, coloured, inline, layered, shaped
from freestone.reports.quantities import quantity_of
from freestone.reports.shown import cells_of, order_of

_TRADE_PX = 300
"""Height of time against memory, and the least width it is drawn at."""
_WIDE = 3.0
"""Ratios that span more than this are drawn on a logarithmic axis."""


def trade(
    experiment: Experiment,
    summary: Summary,
    workload: str,
    memory: str = "peak_rss_kib",
    front: Collection[str] | None = None,
) -> alt.LayerChart:
    """Time against memory, both as ratios to the baseline with their intervals: lower left is better in both.

    The dotted stairs join the configurations that no other one beats in both.

    Args:
        memory: the metric that is the memory.
        front: configurations that are on a front which was judged elsewhere: they are filled, all others hollow, and
            there are no stairs. None for the stairs.
    """
    cells = cells_of(summary, workload)
    time = quantities.time_of(cells.values())
    baseline = cells.get(summary.baseline)
    rows: Rows = []
    if baseline is not None and baseline.status == "ok":
        rows.append({"configuration": summary.baseline, **_trade_row(None, None)})
    for name in order_of(experiment, summary, workload):
        cell = cells[name]
        if cell.status == "ok" and name != summary.baseline and time in cell.ratio and memory in cell.ratio:
            rows.append({"configuration": name, **_trade_row(cell.ratio[time], cell.ratio[memory])})
    quantity = quantity_of(memory)
    x = _trade_axis(rows, "x", f"{axes.in_sentence(quantity_of(time))}, ratio to {summary.baseline}")
    y = _trade_axis(rows, "y", f"{quantity.title}, ratio to {summary.baseline}")
    colour = coloured(experiment)
    stairs = [] if front is not None else [{**row, "configuration": summary.baseline} for row in _front(rows)]
    filled = [row for row in rows if front is None or row["configuration"] in front]
    hollow = [row for row in rows if row not in filled]
    return layered(
        alt.Chart(inline([{"at": 1.0}])).mark_rule().encode(x=x.of("at")),
        alt.Chart(inline([{"at": 1.0}])).mark_rule().encode(y=y.vertical("at")),
        alt.Chart(inline(stairs))
        .mark_line(strokeWidth=1.2, strokeDash=[2, 3], interpolate="step-after")
        .encode(x=x.of("x"), y=y.vertical("y"), order=alt.Order("step:Q"), color=colour),
        alt.Chart(inline(rows))
        .mark_rule(strokeWidth=5, opacity=0.35)
        .encode(x=x.of("x_low"), x2=alt.X2("x_high:Q"), y=y.vertical("y"), color=colour),
        alt.Chart(inline(rows))
        .mark_rule(strokeWidth=5, opacity=0.35)
        .encode(x=x.of("x"), y=y.vertical("y_low"), y2=alt.Y2("y_high:Q"), color=colour),
        *(
            alt.Chart(inline(some))
            .mark_point(size=70, filled=is_filled, opacity=1)
            .encode(
                x=x.of("x"),
                y=y.vertical("y"),
                color=colour,
                shape=shaped(experiment),
                tooltip=[
                    alt.Tooltip("configuration:N"),
                    alt.Tooltip("x:Q", title=quantity_of(time).title, format=".3f"),
                    alt.Tooltip("y:Q", title=quantity.title, format=".3f"),
                ],
            )
            for some, is_filled in ((filled, True), (hollow, False))
            if some or is_filled
        ),
        *_names(rows, x, y),
        height=_TRADE_PX,
    )


def _trade_row(time: Ratio | None, memory: Ratio | None) -> dict[str, float]:
    one = Ratio(value=1, low=1, high=1, pairs=0, different=False)
    time, memory = time or one, memory or one
    x_low, x_high = axes.ends_of(time)
    y_low, y_high = axes.ends_of(memory)
    return {"x": time.value, "x_low": x_low, "x_high": x_high, "y": memory.value, "y_low": y_low, "y_high": y_high}


def _front(rows: Rows) -> Rows:
    """The rows that no other row beats in both ratios, left to right."""
    best: Rows = []
    for row in sorted(rows, key=lambda row: (row["x"], row["y"])):
        if not best or row["y"] < best[-1]["y"]:
            best.append(row)
    return [{"x": row["x"], "y": row["y"], "step": step} for step, row in enumerate(best)]


def _trade_axis(rows: Rows, field: str, title: str) -> Axis:
    """An axis of ratios with room for names at its ends; logarithmic where it is wide, so that none is crowded out."""
    ends = [row[end] for row in rows for end in (f"{field}_low", f"{field}_high") if math.isfinite(row[end])]
    if not ends or min(ends) <= 0 or max(ends) / min(ends) < _WIDE:
        return Axis(axes.domain_of(ends, left=0.16, right=0.16), title)
    low, high = (math.exp(end) for end in axes.domain_of(map(math.log, ends), left=0.16, right=0.16))
    return Axis([low, high], title, ticks.logarithmic("count", low, high))


def _names(rows: Rows, x: Axis, y: Axis) -> Iterator[alt.Chart]:
    """The name of each row, where it covers nothing, and a line to it from its point where it stands far.

    Reckoned on a plot of the narrowest width in use, since a wider one only pulls names apart.
    """
    points = {
        row["configuration"]: (x.share(row["x"]) * _TRADE_PX, (1 - y.share(row["y"])) * _TRADE_PX) for row in rows
    }
    offsets = placing.places(points, _TRADE_PX, _TRADE_PX)
    for row in rows:
        dx, dy = offsets[row["configuration"]]
        at = alt.Chart(inline([row])).encode(x=x.of("x"), y=y.vertical("y"))
        if placing.is_far((dx, dy)):
            yield at.mark_rule(style="leader", x2Offset=dx - math.copysign(3, dx), y2Offset=dy).encode(
                x2="x:Q", y2="y:Q"
            )
        named = at.mark_text(style="label", align="left" if dx > 0 else "right", dx=dx, dy=dy)
        yield named.encode(text=alt.Text("configuration:N"))
