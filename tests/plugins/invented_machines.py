"""What single machines say, to stand side by side: what every allocator takes is chosen by the test."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

from freestone.analysis import statistics
from freestone.analysis.across.kinds import kind_of
from freestone.analysis.across.packed_rounds import PackedRounds
from freestone.analysis.across.there import ASPECTS, Outcome, There
from freestone.analysis.summary import as_ratio
from freestone.records.schema import Machine, Ratio

ROUNDS = 10

Took = Mapping[str, Sequence[float]]
"""Configuration -> what it took in each round, as ratio to the baseline."""


def took(value: float, spread: float = 0.003, seed: int | None = None) -> list[float]:
    """Ten rounds of this geometric mean and standard error: with 0.003 what differs from 1 by a hundredth is real.

    Args:
        seed: of the order of the rounds; rounds of other orders tell nothing of each other.
    """
    signs = [1, -1] * (ROUNDS // 2)
    random.Random(seed if seed is not None else f"{value} {spread}").shuffle(signs)
    return [value * math.exp(sign * spread * math.sqrt(ROUNDS - 1)) for sign in signs]


def there(
    place: str,
    time: Took,
    best: str | None = None,
    *,
    memory: Took | None = None,
    best_in_memory: str | None = None,
    cpu: str | None = None,
    baseline: str = "glibc",
    workload: str = "work",
    failed: Mapping[str, str] | None = None,
) -> There:
    """One machine; a kind of its own unless it has a processor that others have too.

    Args:
        place: what it is called.
        time: what each configuration took beside the baseline, which is among them only where it varies.
        best: who is best in time.
        memory: as ``time``, of peak memory; as the baseline where it is not said.
        best_in_memory: who is best in it.
        cpu: its processor.
        baseline: what the others are held against.
        workload: what was measured.
        failed: configurations that have no result -> why.
    """
    machine = Machine(id=place, facts={"cpu": cpu or f"processor of {place}", "page_size": 4096})
    memory = memory if memory is not None else {name: [1.0] * len(each) for name, each in time.items()}
    failed = failed or {}
    rounds = {
        aspect: PackedRounds(_by_round(each, baseline, failed))
        for aspect, each in zip(ASPECTS, (time, memory), strict=True)
    }
    return There(
        place=place,
        machine=place,
        kind=kind_of(machine),
        workload=workload,
        command=(workload,),
        baseline=baseline,
        best={aspect: name for aspect, name in zip(ASPECTS, (best, best_in_memory), strict=True) if name is not None},
        ratios={aspect: _ratios(each, baseline) for aspect, each in rounds.items()},
        rounds=rounds,
        outcomes={
            name: Outcome("failed", failed[name]) if name in failed else Outcome("ok")
            for name in dict.fromkeys([baseline, *time, *failed])
        },
    )


def _by_round(of_each: Took, baseline: str, failed: Mapping[str, str]) -> dict[str, dict[int, float]]:
    count = max((len(each) for each in of_each.values()), default=ROUNDS)
    rounds = {baseline: [1.0] * count, **of_each}
    return {name: dict(enumerate(each)) for name, each in rounds.items() if name not in failed}


def _ratios(rounds: PackedRounds, baseline: str) -> dict[str, Ratio]:
    found = {name: rounds.ratio(name, baseline) for name in rounds.configurations if name != baseline}
    return {name: as_ratio(statistics.interval(each, 0.95)) for name, each in found.items() if each is not None}
