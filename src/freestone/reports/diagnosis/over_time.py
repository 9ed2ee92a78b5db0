"""Quantities over the time of a program drawn: a line each, named where it ends."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import altair as alt

from freestone.reports.pieces import Rows, inline, layered
from freestone.reports.quantities import Kind, Scale

HEIGHT = 170
LINE = 14
"""Pixels from one name to the next."""
ROOM = 0.24
"""Share of the axis behind the last look, for names."""

Track = Sequence[tuple[float, float]]
"""(seconds, value), in the order of time."""


def draw(tracks: Mapping[str, Track], kind: Kind, *, per_s: bool = False) -> alt.LayerChart:
    """Each quantity from its first look to its last, as it was seen until the next; both axes begin at 0.

    Args:
        tracks: by name; of one alone there is no name beside it, and the ground below it is filled.
        kind: of the values: seconds, KiB or counts.
        per_s: whether they are counts a second.
    """
    top = max((value for track in tracks.values() for _, value in track), default=0.0) or 1.0
    end = max((track[-1][0] for track in tracks.values() if track), default=0.0) or 1.0
    scale, time = Scale.over(kind, [top]), Scale.over("time", [end])
    several = len(tracks) > 1
    unit = f"{scale.unit}{'/s' if per_s else ''}"
    x = alt.X(
        "at:Q",
        title=None,
        scale=alt.Scale(domain=[0, end / time.divisor * (1 + ROOM if several else 1)], nice=False),
        axis=alt.Axis(grid=False, tickCount=4, labelExpr=f"datum.value + {json.dumps(' ' + time.unit)}"),
    )
    y = alt.Y(
        "value:Q",
        title=None,
        scale=alt.Scale(domain=[0, top * 1.06 / scale.divisor], nice=False),
        axis=alt.Axis(grid=True, tickCount=4, labelExpr=f"format(datum.value, ',') + {json.dumps(' ' + unit)}"),
    )
    names = list(tracks)
    # The first colour of the palette is the baseline's grey, which is nobody's here.
    colour = alt.Color("name:N", scale=alt.Scale(domain=["", *names]), legend=None)
    rows: Rows = [
        {"name": name, "at": float(f"{at / time.divisor:.6g}"), "value": float(f"{value / scale.divisor:.6g}")}
        for name, track in tracks.items()
        for at, value in track
    ]
    data = inline(rows)
    lines = alt.Chart(data).mark_line(strokeWidth=1.8, interpolate="step-after")
    tooltip = [
        alt.Tooltip("name:N", title="what"),
        alt.Tooltip("at:Q", title=time.unit),
        alt.Tooltip("value:Q", title=unit, format=",.4~f"),
    ]
    layers = [lines.encode(x=x, y=y, color=colour, tooltip=tooltip)]
    if not several:
        area = alt.Chart(data).mark_area(opacity=0.16, interpolate="step-after")
        layers.insert(0, area.encode(x=x, y=y, color=colour))
        return layered(*layers, height=HEIGHT)
    ends = {name: track[-1] for name, track in tracks.items() if track}
    for name, place in _places({name: value / (top * 1.06) * HEIGHT for name, (_, value) in ends.items()}).items():
        at, value = ends[name]
        row: Rows = [{"name": name, "at": at / time.divisor, "value": value / scale.divisor}]
        shift = value / (top * 1.06) * HEIGHT - place
        label = alt.Chart(inline(row)).mark_text(align="left", dx=6, dy=shift, fontSize=12)
        layers.append(label.encode(x=x, y=y, text=alt.Text("name:N"), color=colour))
    return layered(*layers, height=HEIGHT)


def _places(heights: Mapping[str, float]) -> dict[str, float]:
    """Where names stand, in pixels from below: near their lines, and none over another."""
    found: dict[str, float] = {}
    lowest = 0.0
    for name, height in sorted(heights.items(), key=lambda each: each[1]):
        found[name] = max(height, lowest)
        lowest = found[name] + LINE
    over = max(found.values(), default=0.0) - (HEIGHT - LINE / 2)
    return {name: height - max(0.0, over) for name, height in found.items()}
