"""Orders of malloc and free drawn: each configuration's time in each order as ratio to its own in LIFO."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt

from freestone.records.schema import Experiment
from freestone.reports import ticks
from freestone.reports.orders.data import Degradation, Member, Orders
from freestone.reports.pieces import Rows, coloured, inline, layered, shaped

LINE = 13
"""Height of one configuration's line, pixels."""


def draw(
    experiment: Experiment, family: Orders, against: Mapping[str, Mapping[Member, Degradation]]
) -> alt.LayerChart | None:
    """A group of lines for each order, a line for each configuration, with the interval behind the point.

    None where there is no ratio. The axis is logarithmic: a half and a double lie equally far from 1.
    """
    members = [member for member in family.members if any(member in found for found in against.values())]
    if not members:
        return None
    rows: Rows = []
    for name, found in against.items():
        for member, ratio in found.items():
            low, high = ratio.interval or (ratio.value, ratio.value)
            rows.append(
                {
                    "order": member.title,
                    "configuration": name,
                    "value": float(f"{ratio.value:.4g}"),
                    "low": float(f"{low:.4g}"),
                    "high": float(f"{high:.4g}"),
                    "label": f"{name} {ratio.value:.2f}",
                }
            )
    low, high = min(1.0, *(row["low"] for row in rows)), max(1.0, *(row["high"] for row in rows))
    left, right = low / 1.1, high * 1.1 * (high / low) ** 0.25  # the names stand on the right
    scale = alt.Scale(type="log", domain=[left, right], nice=False)
    round_numbers = ticks.logarithmic("count", left, right)
    axis = alt.Axis(grid=True, values=round_numbers if len(round_numbers) > 2 else alt.Undefined, format="~g")

    def across(field: str) -> alt.X:
        return alt.X(f"{field}:Q", title="ratio to LIFO", scale=scale, axis=axis)

    titles = [member.title for member in members]
    y = alt.Y(
        "order:N",
        sort=titles,
        title=None,
        axis=alt.Axis(labelLimit=220),
        scale=alt.Scale(domain=titles, paddingInner=0.12, paddingOuter=0.06),
    )
    names = [name for name in against if against[name]]
    within = alt.YOffset("configuration:N", sort=names, scale=alt.Scale(domain=names, paddingOuter=0.1))
    colour, shape, data = coloured(experiment), shaped(experiment), inline(rows)
    return layered(
        alt.Chart(inline([{"at": 1.0}])).mark_rule().encode(x=across("at")),
        alt.Chart(data)
        .mark_rule(strokeWidth=5, opacity=0.28)
        .encode(x=across("low"), x2=alt.X2("high:Q"), y=y, yOffset=within, color=colour),
        alt.Chart(data)
        .mark_point(size=36, filled=True, opacity=1)
        .encode(x=across("value"), y=y, yOffset=within, color=colour, shape=shape, tooltip=[alt.Tooltip("label:N")]),
        alt.Chart(data)
        .mark_text(style="label", align="left", dx=7, fontSize=10)
        .encode(x=across("high"), y=y, yOffset=within, text=alt.Text("label:N")),
        height=max(60, LINE * len(names) * len(members)),
    )
