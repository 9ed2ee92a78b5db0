"""The heap beside the resident set, as it was for long."""

from __future__ import annotations

from dataclasses import dataclass

from freestone.doctor.evidence import mib
from freestone.doctor.observations import HeapPoint, Observations
from freestone.doctor.thresholds import LASTS, WASTE_KIB


@dataclass(frozen=True)
class State:
    """The heap and the resident set at one moment."""

    point: HeapPoint
    rss_kib: int

    @property
    def idle_kib(self) -> int:
        """Resident and not in use."""
        return max(0, self.rss_kib - self.point.live_kib)

    @property
    def waste(self) -> float:
        """Its share; 0 where it is little."""
        return self.idle_kib / self.rss_kib if self.rss_kib > 0 and self.idle_kib >= WASTE_KIB else 0.0

    @property
    def words(self) -> tuple[str, ...]:
        """What is resident and what of malloc's is in use; and whether most is not malloc's at all."""
        said = (f"{mib(self.rss_kib)} resident, {mib(self.point.live_kib)} in use",)
        held_kib = self.point.held_kib
        if held_kib is None or self.rss_kib < WASTE_KIB or held_kib > self.rss_kib / 2:
            return said
        return (*said, f"malloc holds {mib(held_kib)}; the rest is code, files and what it maps by itself")


def lasting(seen: Observations) -> State | None:
    """The heap as it was when most lay idle that lay so for long; None where nobody looked."""
    if seen.heap is None:
        return None
    points = [point for point in seen.heap.points if point.rss_kib is not None]
    if not points:
        return None
    ends = [*(point.at_s for point in points[1:]), max(seen.heap.wall_s, points[-1].at_s)]
    states = [
        (_between(point, later), max(0.0, end - point.at_s))
        for point, later, end in zip(points, [*points[1:], points[-1]], ends, strict=True)
    ]
    lasted, needed = 0.0, LASTS * sum(duration for _, duration in states)
    for state, duration in sorted(states, key=lambda each: -each[0].idle_kib):
        lasted += duration
        if lasted >= needed:
            return state
    return states[-1][0]


def _between(point: HeapPoint, later: HeapPoint) -> State:
    """What is taken for the state between two looks: that at the first where nothing was asked for since.

    Where something was, more may have been in use than at either; the fuller of both is what is known.
    """
    known = point if later.asked_kib == point.asked_kib or point.live_kib >= later.live_kib else later
    return State(known, known.rss_kib or 0)
