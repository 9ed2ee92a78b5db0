"""The overview of many workloads: one square for each workload and configuration, coloured by its time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt

from freestone.analysis import digits
from freestone.records.schema import Cell, Experiment, Summary
from freestone.reports import quantities
from freestone.reports.pieces import Rows, inline, layered

SQUARE = 19
"""Height of a row, pixels."""
FARTHEST = math.log(4)
"""Ratios farther from 1 than this have the last colour."""

COLOURS = ("#2166AC", "#F2F2F2", "#B2182B")
"""Of the least ratio, of 1 and of the greatest: blue and red, which every eye tells apart."""
INK, INK_ON_DARK = "#000000", "#FFFFFF"
DARK_FROM = 1.15
"""Ratios whose logarithm is farther from 0 than this have a number in :data:`INK_ON_DARK`."""

PALE = 0.35
"""Share of its colour that a ratio keeps where no difference was seen."""


@dataclass(frozen=True)
class Square:
    """One workload under one configuration."""

    workload: str
    configuration: str
    ratio: float | None
    """To the baseline; None where there is no result."""
    words: str
    """The ratio, with a sign where no difference was seen; or why there is none."""


def squares(experiment: Experiment, summary: Summary, metric: str | None = None) -> list[Square]:
    """Everything but the baseline, in the order of the experiment.

    Args:
        metric: whose ratio is shown; each workload's own time where it is None.
    """
    times = {workload.name: workload.time for workload in experiment.workloads}
    return [
        _square(cell, metric or times[cell.workload])
        for cell in summary.cells
        if cell.configuration != summary.baseline and cell.workload in times
    ]


def _square(cell: Cell, metric: str) -> Square:
    ratio = cell.ratio.get(metric)
    if cell.status != "ok" or ratio is None or not math.isfinite(ratio.value) or ratio.value <= 0:
        words = "–" if cell.status == "ok" else quantities.STATUS_WORDS[cell.status]
        return Square(cell.workload, cell.configuration, None, words)
    sign = "" if ratio.different else " ≈" if quantities.is_known(ratio) else " ?"
    said = digits.number(ratio.value, 2, different=ratio.different)
    return Square(cell.workload, cell.configuration, ratio.value, f"{said}{sign}")


def draw(shown: Sequence[Square], links: Mapping[str, str] | None = None) -> alt.LayerChart:
    """Rows are workloads, columns configurations; blue below 1, red above, paler where no difference was seen.

    The number stands in every square, so that colour says nothing that words do not.

    Args:
        links: where the squares of a workload lead to, by its name.
    """
    workloads = list(dict.fromkeys(each.workload for each in shown))
    configurations = list(dict.fromkeys(each.configuration for each in shown))
    rows: Rows = [
        {
            "workload": each.workload,
            "configuration": each.configuration,
            "log": _shade(each),
            "words": each.words,
            **({"link": links[each.workload]} if links else {}),
        }
        for each in shown
    ]
    data = inline(rows)
    x = alt.X(
        "configuration:N",
        sort=configurations,
        title=None,
        scale=alt.Scale(domain=configurations),
        axis=alt.Axis(orient="top", labelAngle=-35, grid=False),
    )
    y = alt.Y(
        "workload:N", sort=workloads, title=None, scale=alt.Scale(domain=workloads), axis=alt.Axis(labelLimit=220)
    )
    colour = alt.Color(
        "log:Q",
        scale=alt.Scale(domain=[-FARTHEST, 0, FARTHEST], range=list(COLOURS), interpolate="lab", clamp=True),
        legend=None,
    )
    tooltip = [alt.Tooltip("workload:N"), alt.Tooltip("configuration:N"), alt.Tooltip("words:N", title="ratio")]
    ink = alt.condition(f"abs(datum.log) >= {DARK_FROM}", alt.value(INK_ON_DARK), alt.value(INK))
    fields = alt.Chart(data).mark_rect(strokeWidth=1, stroke="transparent")
    numbers = alt.Chart(data).mark_text(fontSize=10)
    if links:
        fields, numbers = (mark.encode(href=alt.Href("link:N")) for mark in (fields, numbers))
    return layered(
        fields.encode(x=x, y=y, color=colour, tooltip=tooltip),
        numbers.encode(x=x, y=y, text=alt.Text("words:N"), color=ink, tooltip=tooltip),
        height=SQUARE * max(1, len(workloads)),
    )


def _shade(square: Square) -> float:
    """Where on the scale of colours: the ratio's logarithm, a good deal nearer to 1 where no difference was seen.

    Paler by the colour itself and not by letting the page through, which is dark in a dark theme as the numbers are.
    """
    if square.ratio is None:
        return 0.0
    shade = max(-FARTHEST, min(FARTHEST, math.log(square.ratio)))
    return shade if square.words[-1] not in "≈?" else shade * PALE
