"""Who stops how many bugs, drawn: a bar for each way to allocate, its parts by how; the hardened above the usual."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import altair as alt

from conformance.columns import GROUPS, Column
from conformance.misuses import Answers, Case, mean
from conformance.stop import COUNTED, Stop
from freestone.reports import theme as themes
from freestone.reports import vega

PARTS = {
    Stop.REPORTED: "#2b6cb0",
    Stop.GUARDED: "#2a9d8f",
    Stop.REPORTED_LATE: "#8fb5dc",
    Stop.GUARDED_LATE: "#93d0c8",
    Stop.TOLD: "#e0a458",
}
"""How a bug was stopped, in the order of the bar, and its colour, which does on light and on dark."""
assert tuple(PARTS) == COUNTED


def draw(cases: Sequence[Case], columns: Sequence[Column], answers: Answers, *, ink: str) -> alt.VConcatChart:
    """For each group one bar for each name, the longest first."""
    bugs = [case for case in cases if not case.worse]
    groups = [(group, [each.name for each in columns if each.group == group]) for group in GROUPS]
    chart: alt.VConcatChart = alt.vconcat(
        *(_bars(group, bugs, names, answers, ink) for group, names in groups if names), spacing=16
    ).resolve_scale(color="shared")
    return chart


def _bars(group: str, bugs: Sequence[Case], names: Sequence[str], answers: Answers, ink: str) -> alt.Chart:
    order = sorted(names, key=lambda name: -mean(bugs, name, answers, COUNTED))
    rows = [
        {"name": name, "how": stop.value, "bugs": mean(bugs, name, answers, [stop]), "place": place}
        for name in order
        for place, stop in enumerate(PARTS)
    ]
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar()
        .encode(
            x=alt.X("bugs:Q", title=f"of {len(bugs)} bugs", scale=alt.Scale(domain=[0, len(bugs)], nice=False)),
            y=alt.Y("name:N", title=None, sort=order, axis=alt.Axis(labelLimit=260, minExtent=160)),
            color=alt.Color(
                "how:N",
                title=None,
                sort=[stop.value for stop in PARTS],
                scale=alt.Scale(domain=[stop.value for stop in PARTS], range=list(PARTS.values())),
                legend=alt.Legend(orient="top", labelColor=ink),
            ),
            order=alt.Order("place:Q"),
        )
        .properties(width=520, height=alt.Step(20), title=alt.Title(group, anchor="start"))
    )
    return chart


def save(cases: Sequence[Case], columns: Sequence[Column], answers: Answers, folder: Path) -> None:
    """``misuses-light.png`` and ``misuses-dark.png`` in the folder."""
    for name, theme in (("light", themes.LIGHT), ("dark", themes.DARK)):
        chart = draw(cases, columns, answers, ink=theme.ink)
        vega.save_png(chart, folder / f"misuses-{name}.png", theme=theme)
