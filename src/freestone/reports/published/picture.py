"""A reproduction drawn: published and measured values on one axis, each named where it stands."""

from __future__ import annotations

import altair as alt

from freestone.reports.pieces import Rows, inline, layered
from freestone.reports.published.reproduction import Reproduction
from freestone.reports.theme import PALETTE_LIGHT

LINE = 15
"""Height of one value's line, pixels."""

_FILLS = ["transparent", PALETTE_LIGHT[1]]


def draw(reproduction: Reproduction) -> alt.LayerChart:
    """One line for each value, in groups; hollow grey diamonds were published, filled circles measured here.

    The axis is logarithmic: a half and a double lie equally far from 1.
    """
    groups = list(dict.fromkeys(point.group for point in reproduction.points))
    lines = list(dict.fromkeys((point.here, point.name) for point in reproduction.points))
    names = [_line(here, name) for here, name in sorted(lines, key=lambda line: line[0])]
    rows: Rows = [
        {
            "group": point.group,
            "line": _line(point.here, point.name),
            "side": "here" if point.here else "published",
            "value": float(f"{point.value:.4g}"),
            "label": f"{point.name} {point.value:.3g}",
        }
        for point in reproduction.points
        if point.value > 0
    ]
    values = [row["value"] for row in rows]
    low, high = min([*values, 1.0]), max([*values, 1.0])
    data = inline(rows)
    scale = alt.Scale(type="log", domain=[low / 1.1, high * (high / low) ** 0.35 * 1.1], nice=False)

    def across(field: str) -> alt.X:
        return alt.X(f"{field}:Q", title=reproduction.axis, scale=scale, axis=alt.Axis(grid=True))

    y = alt.Y("group:N", sort=groups, title=None, scale=alt.Scale(domain=groups))
    within = alt.YOffset("line:N", sort=names, scale=alt.Scale(domain=names))
    colour = alt.Color("side:N", scale=alt.Scale(domain=["published", "here"]), legend=None)
    tooltip = [alt.Tooltip("group:N"), alt.Tooltip("label:N"), alt.Tooltip("side:N")]
    marks = [
        alt.Chart(inline([{"at": 1.0}])).mark_rule().encode(x=across("at")),
        alt.Chart(data)
        .mark_point(size=45, strokeWidth=1.6)
        .encode(
            x=across("value"),
            y=y,
            yOffset=within,
            color=colour,
            shape=alt.Shape(
                "side:N", scale=alt.Scale(domain=["published", "here"], range=["diamond", "circle"]), legend=None
            ),
            fill=alt.Fill("side:N", scale=alt.Scale(domain=["published", "here"], range=_FILLS), legend=None),
            tooltip=tooltip,
        ),
        alt.Chart(data)
        .mark_text(style="label", align="left", dx=8, fontSize=10)
        .encode(x=across("value"), y=y, yOffset=within, text=alt.Text("label:N")),
    ]
    return layered(*marks, height=max(60, LINE * len(groups) * len(names)))


def _line(here: bool, name: str) -> str:
    return f"{'here' if here else 'published'}, {name}"
