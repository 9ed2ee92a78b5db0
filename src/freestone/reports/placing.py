"""Where names go beside what they name so that they can be read. Pure functions, in pixels, y downwards."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

LETTER, LINE = 7, 14
"""Room for a letter and for a line of a name."""

FAR = 20
"""From here on a name is no longer beside its point: a line has to lead there."""

_POINT = 6
_NEAR = [(10, -10), (10, 12), (-10, -10), (-10, 12)]
_GRID = [(side * across, down) for across in (10, 24, 40, 60, 90) for side in (1, -1) for down in range(-126, 140, 14)]
_CANDIDATES = _NEAR + sorted((each for each in _GRID if math.hypot(*each) > FAR), key=lambda each: math.hypot(*each))
_SWEEPS = 3

Point = tuple[float, float]
Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


def places(points: Mapping[str, Point], width: float, height: float) -> dict[str, tuple[int, int]]:
    """How far right of its point and below it each name begins or, left of it, ends.

    The nearest of some places that covers no point, no other name and no edge; where there is none, that which covers
    least. Names that were placed early are looked at again once the others stand.
    """
    dots = {name: (x - _POINT, y - _POINT, x + _POINT, y + _POINT) for name, (x, y) in points.items()}
    found: dict[str, tuple[int, int]] = {}
    boxes: dict[str, Box] = {}
    for _ in range(_SWEEPS):
        before = dict(found)
        for name, at in points.items():
            others = [*dots.values(), *(box for other, box in boxes.items() if other != name)]
            found[name] = _best(name, at, others, width, height)
            boxes[name] = extent(name, at, found[name])
        if found == before:
            break
    return found


def extent(name: str, point: Point, offset: tuple[int, int]) -> Box:
    """What a name covers that stands this far from its point."""
    (x, y), (dx, dy) = point, offset
    length = LETTER * len(name)
    left = x + dx if dx > 0 else x + dx - length
    return (left, y + dy - LINE / 2, left + length, y + dy + LINE / 2)


def covered(one: Box, other: Box) -> float:
    """The area that two boxes share."""
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, across) * max(0.0, down)


def is_far(offset: tuple[int, int]) -> bool:
    """Whether a line has to lead from the point to its name."""
    return math.hypot(*offset) > FAR


def _best(name: str, at: Point, others: Sequence[Box], width: float, height: float) -> tuple[int, int]:
    best, least = _CANDIDATES[0], math.inf
    for candidate in _CANDIDATES:
        box = extent(name, at, candidate)
        cost = _cost(box, others, width, height)
        if cost == 0:
            return candidate
        if cost < least:
            best, least = candidate, cost
    return best


def _cost(box: Box, others: Iterable[Box], width: float, height: float) -> float:
    beyond = max(0.0, -box[0]) + max(0.0, box[2] - width)
    above = max(0.0, -box[1]) + max(0.0, box[3] - height)
    return sum(covered(box, other) for other in others) + LINE * beyond + LINE * 4 * above


def spread(places: Sequence[float], apart: float, length: float) -> list[float]:
    """The places moved as little as keeps them ``apart`` in their order and, where they fit, between 0 and ``length``.

    Places that would stand too close are gathered into runs, each run about the middle of what it holds.
    """
    order = sorted(range(len(places)), key=lambda index: places[index])
    runs: list[list[int]] = []
    starts: list[float] = []
    for index in order:
        run, start = [index], _start([places[index]], apart, length)
        while runs and starts[-1] + apart * len(runs[-1]) > start:
            run = runs.pop() + run
            starts.pop()
            start = _start([places[each] for each in run], apart, length)
        runs.append(run)
        starts.append(start)
    moved = [0.0] * len(places)
    for run, start in zip(runs, starts, strict=True):
        for step, index in enumerate(run):
            moved[index] = start + apart * step
    return moved


def _start(places: Sequence[float], apart: float, length: float) -> float:
    reach = apart * (len(places) - 1)
    return max(0.0, min(statistics.fmean(places) - reach / 2, length - reach))
