"""Footprint and page faults over time, before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import altair as alt

from freestone.doctor.observations import Point
from freestone.reports import vega
from freestone.reports.diagnosis.over_time import Track, draw

WIDTH = 340


def tracks(courses: Mapping[str, Sequence[Point]]) -> tuple[dict[str, Track], dict[str, Track]]:
    """Resident KiB, and faults since the first look, over seconds since then; of each course by its name."""
    sizes: dict[str, Track] = {}
    faults: dict[str, Track] = {}
    for name, points in courses.items():
        first = points[0]
        sizes[name] = [(each.at_s - first.at_s, float(each.rss_kib)) for each in points]
        faults[name] = [(each.at_s - first.at_s, float(max(0, each.faults - first.faults))) for each in points]
    return sizes, faults


def chart(courses: Mapping[str, Sequence[Point]]) -> alt.HConcatChart:
    """Both beside each other, a line for each course."""
    sizes, faults = tracks(courses)
    left, right = draw(sizes, "memory"), draw(faults, "count")
    return alt.hconcat(
        left.properties(width=WIDTH, title="Resident size"),
        right.properties(width=WIDTH, title="Page faults so far"),
        spacing=36,
    )


def save(courses: Mapping[str, Sequence[Point]], file: Path) -> None:
    """As SVG."""
    vega.save_svg(chart(courses), file)
