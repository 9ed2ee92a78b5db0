"""What was seen of a program over time, for drawings: its faults as a rate, its sizes as lines of a terminal. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from freestone.doctor.observations import Observations, Point
from freestone.reports import sparkline
from freestone.reports.quantities import Scale

STRETCHES = 120
"""Of equal length, of each of which a rate is told; fewer where the program was looked at less often."""

COLUMNS = 32
"""Of a drawing in a terminal."""

_TITLE = 14
"""Columns of the name before a drawing."""

FEWEST = 3
"""Looks; fewer are no course."""


@dataclass(frozen=True)
class Rate:
    """Page faults of one stretch of time."""

    begin_s: float
    end_s: float
    per_s: float


def faults_between(points: Sequence[Point]) -> int:
    """Minor faults from the first look to the last.

    A process whose faults nobody took over makes the sum of a tree fall: nothing is taken off for it.
    """
    return sum(max(0, after.faults - before.faults) for before, after in pairwise(points))


def fault_rates(points: Sequence[Point], stretches: int = STRETCHES) -> list[Rate]:
    """Faults a second from the first look to the last, in stretches of equal length; none where there is no course.

    Between two looks faults are taken to come evenly, so the stretches add up to :func:`faults_between`.
    """
    if len(points) < FEWEST or points[-1].at_s <= points[0].at_s:
        return []
    number = max(1, min(stretches, len(points) - 1))
    begin_s, length_s = points[0].at_s, (points[-1].at_s - points[0].at_s) / number
    sums = [0.0] * number
    for before, after in pairwise(points):
        _share_out(before, after, begin_s, length_s, sums)
    return [
        Rate(begin_s + place * length_s, begin_s + (place + 1) * length_s, faults / length_s)
        for place, faults in enumerate(sums)
    ]


def _share_out(before: Point, after: Point, begin_s: float, length_s: float, sums: list[float]) -> None:
    """Put the faults between two looks into the stretches that lie between them, each by its share of that time."""
    faults, span_s = max(0, after.faults - before.faults), after.at_s - before.at_s
    first = min(len(sums) - 1, int((before.at_s - begin_s) / length_s))
    last = min(len(sums) - 1, int((after.at_s - begin_s) / length_s))
    if span_s <= 0 or first == last:
        sums[last] += faults
        return
    left = float(faults)
    for place in range(first, last):
        begin, end = max(before.at_s, begin_s + place * length_s), begin_s + (place + 1) * length_s
        part = min(left, faults * max(0.0, end - begin) / span_s)
        sums[place] += part
        left -= part
    sums[last] += left


def lacking(seen: Observations) -> str | None:
    """Why there is nothing to draw over time, in one line; None where there is."""
    if seen.course and len(seen.course) >= FEWEST and seen.course[-1].at_s > seen.course[0].at_s:
        return None
    if "course" in seen.unseen:
        return f"Not drawn over time: {seen.unseen['course']}."
    if "course" not in seen.done:
        return "Not drawn over time: it was not looked at from outside."
    looks = len(seen.course)
    return f"Not drawn over time: it was looked at {looks} time{'' if looks == 1 else 's'} only."


def drawn(seen: Observations, *, width: int, ascii_only: bool) -> str:
    """Resident and virtual size and the rate of faults in a line each; nothing where there is nothing to draw.

    Each line is high where the largest of its own values is, and its foot is 0.
    """
    if lacking(seen) is not None:
        return ""
    points, rates = seen.course, fault_rates(seen.course)
    fastest = max(rates, key=lambda each: each.per_s)
    rows = (
        ("  resident", [(each.at_s, each.rss_kib) for each in points], _mib([each.rss_kib for each in points])),
        ("  virtual", [(each.at_s, each.virtual_kib) for each in points], _mib([each.virtual_kib for each in points])),
        (
            "  page faults",
            [*((each.begin_s, each.per_s) for each in rates), (rates[-1].end_s, rates[-1].per_s)],
            f"up to {fastest.per_s:,.0f} a second; {faults_between(points):,} in all",
        ),
    )
    columns = max(4, min(COLUMNS, width - _TITLE))
    time = Scale.over("time", [points[-1].at_s])
    said = f"Over {time.text(points[-1].at_s)}, looked at from outside {len(points)} times:"
    lines = textwrap.wrap(said, width, subsequent_indent="  ")
    for title, course, said in rows:
        line = sparkline.course(sparkline.by_time(course, columns), columns, ascii_only=ascii_only)
        whole = f"{title:<{_TITLE}}{line}  {said}"
        lines += [whole] if len(whole) <= width else [whole[: _TITLE + columns], *_indented(said, width)]
    return "\n".join(lines) + "\n"


def _indented(said: str, width: int) -> list[str]:
    return textwrap.wrap(said, width, initial_indent="    ", subsequent_indent="    ")


def _mib(sizes_kib: Sequence[int]) -> str:
    scale = Scale.over("memory", [max(sizes_kib)])
    return f"up to {scale.text(max(sizes_kib))}; {scale.text(sizes_kib[-1])} at the last look"
