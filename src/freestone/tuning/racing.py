"""Which configurations of a search go on, and which are out: racing with intervals. Pure.

Every batch of rounds has the untouched program in it, and a figure is only ever held against others of its own round,
so that drift is in no ratio. Two configurations are compared within the rounds that both have, or by way of the
untouched program where they have too few in common.

A configuration is *out* when another one is really better in time or memory, and really no more than :data:`SLACK`
worse in the other. "Really" is what its interval says, and an interval is so wide that a configuration to which that
does not apply is put out in at most 5 of 100 searches, however often it is looked at and by how many rivals: the 5 %
are dealt out to :data:`MOST_ARMS` rivals, and of a rival's share one part in ``n (n + 1)`` to the n-th look, which adds
up to one over all looks there may ever be.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from freestone.analysis import arms, statistics
from freestone.analysis.statistics import CONFIDENCE, FEWEST_PAIRS, Estimate, Interval

Rounds = Mapping[tuple[int, int], float]
"""(batch, round) -> a figure above 0; less is better."""

Figures = Mapping[str, Rounds]
"""Objective -> its rounds."""

Race = Mapping[str, Figures]
"""Configuration -> its figures; the untouched program is one of them."""

TIME: Final = "time"
MEMORY: Final = "memory"
OBJECTIVES: Final = (TIME, MEMORY)

STEPS: Final = {TIME: 0.0, MEMORY: arms.PAGE_KIB}
"""Objective -> the steps in which it is counted (:func:`freestone.analysis.arms.step`)."""

MOST_ARMS: Final = 64
"""Configurations that one search tries at most."""

SLACK: Final = 1.01
"""What is not worse by more than this factor is as good: nobody keeps a slow one for a thousandth of the memory."""


def certainty(looks: int) -> float:
    """The confidence of an interval by which a configuration is put out at its n-th look, n from 1 on."""
    return 1 - (1 - CONFIDENCE) / (MOST_ARMS * looks * (looks + 1))


def against(race: Race, objective: str, one: str, other: str, baseline: str) -> Estimate | None:
    """The logarithm of the ratio ``one / other``; None where nothing can be said."""
    mine, theirs = (race[name].get(objective, {}) for name in (one, other))
    step = STEPS[objective]
    if len(mine.keys() & theirs.keys()) >= FEWEST_PAIRS or other == baseline:
        return statistics.within_rounds(mine, theirs, step)
    middle = race[baseline].get(objective, {})
    parts = [statistics.within_rounds(each, middle, step) for each in (mine, theirs)]
    # Where both have a round, they share the untouched program's noise: as if they did not, the interval is too wide.
    return statistics.weighted([(1.0, parts[0]), (-1.0, parts[1])]) if parts[0] and parts[1] else None


def dominates(race: Race, one: str, other: str, baseline: str, confidence: float) -> bool:
    """Whether one is really better in time or memory, and really no more than :data:`SLACK` worse in the other."""
    ratios: dict[str, Interval] = {}
    for objective in OBJECTIVES:
        # The untouched program is in every round, so the ratio to it is always within rounds.
        swapped = one == baseline
        found = against(race, objective, *((other, one) if swapped else (one, other)), baseline)
        if found is None:
            return False
        interval = statistics.interval(found, confidence)
        ratios[objective] = _inverse(interval) if swapped else interval
    if not all(each.known for each in ratios.values()):
        return False
    return any(each.high < 1 for each in ratios.values()) and all(each.high < SLACK for each in ratios.values())


def gains_on(race: Race, one: str, other: str, baseline: str) -> bool:
    """Whether one is really lower than another in time or memory, each asked alone: it only says who is measured on."""
    for objective in OBJECTIVES:
        found = against(race, objective, one, other, baseline)
        if found is not None and statistics.interval(found, CONFIDENCE).is_below_one:
            return True
    return False


def put_out(
    race: Race, baseline: str, looked_at: Collection[str], looks: Mapping[str, int], out: Collection[str]
) -> dict[str, str]:
    """Who is out by now -> the one that is better.

    Args:
        race: what was measured so far.
        baseline: the untouched program, which is never out.
        looked_at: those of the last batch: nobody else has new rounds.
        looks: of how many batches each was part, the last one included.
        out: those that were out before; what they have measured still counts against others.
    """
    found: dict[str, str] = {}
    # The best first, so that whoever is named is worth naming.
    rivals = sorted(race, key=lambda each: (cost(race, each, baseline, "balanced"), each))
    for name in looked_at:
        if name == baseline or name in out or name not in race:
            continue
        sure = certainty(looks[name])
        beaten_by = next(
            (each for each in rivals if each != name and dominates(race, each, name, baseline, sure)), None
        )
        if beaten_by is not None:
            found[name] = beaten_by
    return found


def ratio(race: Race, objective: str, name: str, baseline: str) -> float:
    """Estimated ratio to the untouched program; infinite where there is none."""
    found = statistics.within_rounds(race[name].get(objective, {}), race[baseline].get(objective, {}))
    return math.inf if found is None else statistics.exponential(found.middle)


def cost(race: Race, name: str, baseline: str, goal: str) -> float:
    """What a goal makes of the ratios: that of time, that of memory, or the product of both."""
    ratios = {objective: ratio(race, objective, name, baseline) for objective in OBJECTIVES}
    return ratios[goal] if goal in ratios else ratios[TIME] * ratios[MEMORY]


def front(race: Race, names: Iterable[str], baseline: str) -> list[str]:
    """Those that no other is estimated to beat in both; no intervals are asked, as this only says who is tried next."""
    points = {name: tuple(ratio(race, objective, name, baseline) for objective in OBJECTIVES) for name in names}
    return [
        name
        for name, point in points.items()
        if not any(
            rival != point and all(theirs <= mine for theirs, mine in zip(rival, point, strict=True))
            for rival in points.values()
        )
    ]


def ranked(race: Race, names: Sequence[str], baseline: str, goal: str) -> list[str]:
    """Those that are worth more rounds, by the goal's cost: of the estimated front those that gain, then the others."""
    gaining = [name for name in names if min(ratio(race, each, name, baseline) for each in OBJECTIVES) * SLACK < 1]
    leading = set(front(race, gaining, baseline))
    return sorted(names, key=lambda name: (name not in leading, cost(race, name, baseline, goal), name))


def _inverse(interval: Interval) -> Interval:
    low, high = interval.low, interval.high
    return Interval(
        1 / interval.value if interval.value else math.inf,
        1 / high if high > 0 else math.inf,
        1 / low if low > 0 else math.inf,
        interval.pairs,
    )
