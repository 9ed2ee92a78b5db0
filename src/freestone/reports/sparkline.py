"""The course of a quantity in one line of a terminal: a character for each stretch, high ones for high values. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

BARS = "▁▂▃▄▅▆▇█"
ASCII_BARS = "_.:-=+*#"


def course(values: Sequence[float], columns: int, *, ascii_only: bool = False) -> str:
    """The course from its beginning to its end in so many characters, the highest ones for its largest value.

    Where there are more values than characters, each character is the largest of its share.

    Args:
        values: none below 0.
    """
    bars = ASCII_BARS if ascii_only else BARS
    shares = min(columns, len(values))
    edges = [len(values) * number // shares for number in range(shares + 1)] if shares else [0]
    points = [max(values[begin:end]) for begin, end in pairwise(edges)]
    top = max(points, default=0)
    return "".join(bars[int(point / top * (len(bars) - 1)) if top else 0] for point in points)


def by_time(points: Sequence[tuple[float, float]], stretches: int) -> list[float]:
    """The largest value in each of so many stretches of equal time; where nobody looked, what was seen last before.

    Args:
        points: (seconds, value), in the order of time.
    """
    if not points:
        return []
    begin_s, length_s = points[0][0], points[-1][0] - points[0][0]
    largest: list[float] = [-math.inf] * stretches
    for at_s, value in points:
        place = int((at_s - begin_s) / length_s * stretches) if length_s > 0 else 0
        place = min(stretches - 1, place)
        largest[place] = max(largest[place], value)
    held, found = points[0][1], []
    for value in largest:
        held = held if value == -math.inf else value
        found.append(held)
    return found
