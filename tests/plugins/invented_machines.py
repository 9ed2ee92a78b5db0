"""What single machines say, to stand side by side: every ratio is chosen by the test."""

from __future__ import annotations

import math

from freestone.analysis import statistics
from freestone.analysis.kinds import kind_of
from freestone.analysis.one_machine import ASPECTS, There
from freestone.analysis.statistics import Estimate
from freestone.analysis.summary import as_ratio
from freestone.records.schema import Machine


def estimate(value: float, spread: float = 0.003) -> Estimate:
    """A ratio as ten rounds have it; with a spread of 0.003 one that differs from 1 by a hundredth is real."""
    return Estimate(math.log(value), spread, 9.0, 10)


def there(
    place: str,
    time: dict[str, Estimate],
    best: str | None = None,
    *,
    cpu: str | None = None,
    baseline: str = "glibc",
    workload: str = "work",
) -> There:
    """One machine; a kind of its own unless it has a processor that others have too."""
    machine = Machine(id=place, facts={"cpu": cpu or f"processor of {place}", "page_size": 4096})
    return There(
        place=place,
        machine=place,
        kind=kind_of(machine),
        workload=workload,
        command=(workload,),
        baseline=baseline,
        best={"time": best} if best else {},
        ratios={
            aspect: {name: as_ratio(statistics.interval(each, 0.95)) for name, each in time.items()}
            if number == 0
            else {}
            for number, aspect in enumerate(ASPECTS)
        },
        estimates={aspect: time if number == 0 else {} for number, aspect in enumerate(ASPECTS)},
    )
