"""Where a ranking changes: of two configurations one takes less on some machines, and the other on others. Pure.

Asked of every pair, the baseline among them: two may change places without either of them crossing the baseline. The
intervals hold for all pairs, places, aspects and tables at once: by those of each machine alone, chance would turn some
among a thousand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from freestone.analysis import family, statistics
from freestone.analysis.across.there import ASPECTS, There
from freestone.analysis.statistics import Estimate

_WHOLE: Final = 1.0
"""Which part of the 5 % the rankings have: it is all that they are asked."""


@dataclass(frozen=True)
class Turn:
    """A configuration that takes less than another at some places, and more at others."""

    aspect: str
    configuration: str
    other: str
    less: Sequence[str]
    more: Sequence[str]


def turns(places: Sequence[There], tables: int) -> list[Turn]:
    """What turns round among the places of a table: first what are winners, then what crosses the baseline.

    Args:
        places: they have one baseline.
        tables: how many are looked at, this one included.
    """
    baseline = places[0].baseline
    names = dict.fromkeys(name for there in places for took in there.rounds.values() for name in took.configurations)
    pairs = list(combinations([*(name for name in names if name != baseline), baseline], 2))
    sure = family.confidence(_WHOLE, tables * len(ASPECTS) * len(pairs) * len(places))
    found = [
        turn
        for aspect in ASPECTS
        for one, other in pairs
        if (turn := _turn(places, aspect, one, other, sure)) is not None
    ]
    best = {there.place: there.best for there in places}

    def of_winners(turn: Turn) -> bool:
        def leads(name: str, where: Sequence[str]) -> bool:
            return any(best[place].get(turn.aspect, baseline) == name for place in where)

        return leads(turn.configuration, turn.less) and leads(turn.other, turn.more)

    return sorted(found, key=lambda turn: (ASPECTS.index(turn.aspect), not of_winners(turn), turn.other != baseline))


def _turn(places: Sequence[There], aspect: str, one: str, other: str, sure: float) -> Turn | None:
    less: list[str] = []
    more: list[str] = []
    for there in places:
        found = there.rounds[aspect].ratio(one, other) if aspect in there.rounds else None
        side = 0 if found is None else _side(found, sure)
        if side:
            (less if side < 0 else more).append(there.place)
    return Turn(aspect, one, other, less, more) if less and more else None


def _side(ratio: Estimate, sure: float) -> int:
    """-1 where it is really below 1, 1 where it is really above, 0 where nobody knows."""
    if abs(ratio.middle) <= ratio.error:
        return 0  # no interval is as narrow; most are not, and this is asked of every pair on every machine
    held = statistics.interval(ratio, sure)
    return (held.low > 1) - (held.high < 1) if held.known else 0
