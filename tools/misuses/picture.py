"""Who stops how many bugs, drawn: a bar for each way to allocate, its parts by when."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import altair as alt

from freestone.reports import figures
from misuses.cases import Case
from misuses.judging import Stop
from misuses.page import Answers

PARTS = {Stop.AT_ONCE: "#2b6cb0", Stop.LATE: "#90b4d8", Stop.HARMLESS: "#c8c8c8"}
"""When a bug is stopped, in the order of the bar, and its colour, which does on light and on dark."""


def draw(cases: Sequence[Case], names: Sequence[str], answers: Answers) -> alt.Chart:
    """One bar for each name, the longest first."""
    count = {
        (name, stop): sum(answers[case, name] is stop for case in cases)
        for name in names
        for stop in (*PARTS, Stop.NEVER)
    }
    order = sorted(names, key=lambda name: -sum(count[name, stop] for stop in PARTS))
    rows = [
        {"name": name, "when": stop.value, "bugs": count[name, stop], "place": place}
        for name in order
        for place, stop in enumerate(PARTS)
    ]
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar()
        .encode(
            x=alt.X("bugs:Q", title=f"of {len(cases)} bugs", scale=alt.Scale(domain=[0, len(cases)], nice=False)),
            y=alt.Y("name:N", title=None, sort=order, axis=alt.Axis(labelLimit=260)),
            color=alt.Color(
                "when:N",
                title=None,
                sort=[stop.value for stop in PARTS],
                scale=alt.Scale(domain=[stop.value for stop in PARTS], range=list(PARTS.values())),
                legend=alt.Legend(orient="top"),
            ),
            order=alt.Order("place:Q"),
        )
        .properties(width=520, height=alt.Step(20))
    )
    return chart


def save(chart: alt.Chart, folder: Path) -> None:
    """``misuses-light.png`` and ``misuses-dark.png`` in the folder."""
    figures.save_png(chart, folder / "misuses-light.png", theme=figures.LIGHT)
    figures.save_png(chart, folder / "misuses-dark.png", theme=figures.DARK)
