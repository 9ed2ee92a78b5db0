"""System calls about memory by size drawn: a row for each kind, a square for each size, darker where it was more."""

from __future__ import annotations

import math
from collections.abc import Mapping

import altair as alt

from freestone.reports.numerals import bytes_in_words
from freestone.reports.pieces import Rows, inline, layered

ROW = 30
"""Height of a kind's row, pixels."""


def draw(sizes: Mapping[str, Mapping[int, int]]) -> alt.LayerChart | None:
    """How often each kind of call was about how much; the number stands in the square. None where no size is known.

    Args:
        sizes: kind -> KiB, rounded up to a power of two -> calls.
    """
    known = {kind: counts for kind, counts in sizes.items() if counts}
    if not known:
        return None
    every = sorted({size for counts in known.values() for size in counts})
    most = max(count for counts in known.values() for count in counts.values())
    rows: Rows = [
        {
            "call": kind,
            "size": bytes_in_words(size << 10),
            "calls": count,
            "depth": round(0.1 + 0.4 * (math.log(count) / math.log(most) if most > 1 else 1.0), 3),
            "text": _short(count),
        }
        for kind, counts in known.items()
        for size, count in counts.items()
        if count > 0
    ]
    x = alt.X(
        "size:O",
        title="size, up to",
        sort=[bytes_in_words(size << 10) for size in every],
        axis=alt.Axis(labelAngle=-40, labelLimit=80, grid=False),
    )
    y = alt.Y("call:N", title=None, sort=list(known), axis=alt.Axis())
    data = inline(rows)
    tooltip = [alt.Tooltip("call:N"), alt.Tooltip("size:O", title="up to"), alt.Tooltip("calls:Q", format=",")]
    return layered(
        alt.Chart(data)
        .mark_rect(cornerRadius=3)
        .encode(
            x=x,
            y=y,
            color=alt.Color("call:N", scale=alt.Scale(domain=["", *known]), legend=None),
            opacity=alt.Opacity("depth:Q", scale=alt.Scale(domain=[0, 1], range=[0, 1]), legend=None),
            tooltip=tooltip,
        ),
        alt.Chart(data)
        .mark_text(style="label", fontSize=11)
        .encode(x=x, y=y, text=alt.Text("text:N"), tooltip=tooltip),
        height=ROW * len(known),
    )


def _short(count: int) -> str:
    """In at most four characters: ``940``, ``1.5k``, ``384k``, ``2M``."""
    for step, unit in ((10**6, "M"), (10**3, "k")):
        if count >= step:
            number = count / step
            return f"{number:.1f}{unit}" if number < 9.95 and round(number, 1) % 1 else f"{number:.0f}{unit}"
    return str(count)
