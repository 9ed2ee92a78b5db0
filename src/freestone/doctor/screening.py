"""Which remedies get rounds, where there is time for few: each has run once, and the most promising are chosen. Pure.

One run proves nothing: what is prescribed is judged in rounds of its own (:mod:`.verdict`). It only spares these the
remedies that do next to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from freestone.analysis.pareto import PRICE, Goal
from freestone.doctor.remedies import Remedy

STEP: Final = 0.05
"""Ratios nearer to one another than about this are taken for equal: then the likeliest by the plan is first."""


ONE_RUN: Final = "one run of it took "
"""How the reason begins why a remedy that has run once gets no rounds; what it took follows."""


@dataclass(frozen=True)
class Once:
    """What one run took."""

    wall_s: float
    memory_kib: int | None
    """By the metric that is the program's memory; None where it was not measured."""


def chosen(once: Mapping[Remedy, Once], untouched: Once, goal: Goal, most: int) -> list[Remedy]:
    """The most promising remedies, an allocator with a setting never without that allocator alone.

    Args:
        once: each remedy's run, the likeliest first.
        untouched: what the program takes as it is.
        most: how many, at most.
    """
    order = list(once)
    best_first = sorted(order, key=lambda each: promise(once[each], untouched, goal))
    found: list[Remedy] = []
    for each in best_first:
        alone = _alone(each, order)
        for wanted in (each,) if alone is None else (alone, each):
            if wanted not in found and len(found) < most:
                found.append(wanted)
    return found


def promise(run: Once, untouched: Once, goal: Goal) -> tuple[bool, int]:
    """How a run compares with the program as it is; less is better.

    Returns:
        Whether a balanced goal forbids it for its memory; and the goal's ratio on a logarithmic scale, in steps.
    """
    time = _ratio(run.wall_s, untouched.wall_s)
    memory = _ratio(run.memory_kib, untouched.memory_kib)
    wanted = {"time": time, "memory": memory}.get(goal, time * memory)
    return goal == "balanced" and memory > PRICE, round(math.log(wanted) / STEP)


def _ratio(one: float | None, other: float | None) -> float:
    return one / other if one and other else 1.0


def _alone(each: Remedy, order: Sequence[Remedy]) -> Remedy | None:
    """The allocator alone of a remedy that sets something beside it; None for glibc, whose is the untouched program."""
    if each.allocator == "glibc" or each.is_plain:
        return None
    return next((one for one in order if one.allocator == each.allocator and one.is_plain), None)
