"""What is measured next: rounds more for those that may be best, and something new. Pure, but for what Optuna keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from freestone.allocators import configuration_for, notation
from freestone.records.schema import Allocator, Configuration
from freestone.tuning import proposals, racing, space
from freestone.tuning.kept import ROUNDS, Tuning
from freestone.tuning.proposals import StudyBroken, Tried
from freestone.tuning.space import Point, Room
from freestone.tuning.standing import Prices, Standing

MOST_IN_BATCH: Final = 8
"""Beside the untouched program, which each round has twice."""
MOST_AGAIN: Final = 4
"""Of these: those that were measured before."""
FIRST: Final = 4
"""Settings in the first batch, where there is one allocator and no other."""
MOST_FINALISTS: Final = 5
WANTED_ROUNDS: Final = 10
"""Which the finalists should have; where that is too many for what is left, there are fewer finalists."""
MOST_BATCHES: Final = 40


class Choice:
    """Chooses batch after batch of one search.

    Args:
        tuning: what was asked.
        room: what may be chosen.
        allocators: by name; those of the room.
    """

    def __init__(self, tuning: Tuning, room: Room, allocators: Mapping[str, Allocator]) -> None:
        self._tuning = tuning
        self._room = room
        self._allocators = allocators
        self.broken: str | None = None
        """Why nothing is proposed any more; None where the study works."""

    def batch(self, number: int, standing: Standing, left_s: float, prices: Prices | None) -> list[Configuration]:
        """What the next batch measures beside the untouched program; nothing where the search is at its end.

        Args:
            number: of the batch, from 1 on. The first has the configurations that the search begins with.
            standing: before it.
            left_s: seconds that the search may still last.
            prices: of trials; None before the first.
        """
        head = self._tuning.head
        if number == 1:
            # With nothing but the untouched program's own allocator there are only its settings.
            begins = [each for each in head.configurations if each.name != head.baseline]
            return begins or self._new(number, standing, FIRST)
        if standing.broken or prices is None or number > MOST_BATCHES:
            return []
        ranked = racing.ranked(standing.race, standing.alive, standing.baseline, self._tuning.goal)
        again, new = self._shares(ranked, prices, left_s / ROUNDS)
        if not again and not new:
            return []
        fresh = self._new(number, standing, new)
        if not fresh:
            again = ranked[: len(again) + new] if len(ranked) > MOST_FINALISTS else []
        return [*(standing.configurations[name] for name in again), *fresh]

    def finalists(self, standing: Standing, left_s: float, prices: Prices | None) -> list[Configuration]:
        """Who is confirmed: of those that are not out the worthiest, and one that is out where nobody else is left."""
        among = standing.alive or [name for name in standing.race if name != standing.baseline]
        ranked = racing.ranked(standing.race, among, standing.baseline, self._tuning.goal)
        ranked = self._spread(ranked, standing) if standing.alive else ranked[:1]
        most = min(MOST_FINALISTS, len(ranked))
        while most > 1 and prices is not None and prices.round_s(ranked[:most]) * WANTED_ROUNDS > left_s:
            most -= 1
        return [standing.configurations[name] for name in ranked[:most]]

    @staticmethod
    def _spread(ranked: Sequence[str], standing: Standing) -> list[str]:
        """The first, and behind it no one that sets more than another does of those before it, and gains nothing by it.

        What the first may set in vain is seen beside it: the one that does best of those that set a part of it.
        """

        def is_part(one: str, other: str) -> bool:
            mine, theirs = (standing.configurations[each] for each in (one, other))
            same = mine.allocator.name == theirs.allocator.name
            return same and space.entries(mine.environment) < space.entries(theirs.environment)

        def in_vain(more: str, less: str) -> bool:
            return is_part(less, more) and not racing.gains_on(standing.race, more, less, standing.baseline)

        found = list(ranked[:1])
        found += [less for less in ranked if found and in_vain(found[0], less)][:1]
        for name in ranked:
            if name not in found and not any(in_vain(name, less) for less in found):
                found.append(name)
        return _with_plain(found, standing)

    @staticmethod
    def _shares(ranked: Sequence[str], prices: Prices, round_s: float) -> tuple[list[str], int]:
        """Who has rounds again and how many new ones there are, where a round may take so many seconds."""
        again: list[str] = []
        new = 0
        while len(again) + new < MOST_IN_BATCH:
            takes_old = len(again) < min(MOST_AGAIN, len(ranked)) and len(again) < new
            more = (ranked[: len(again) + 1], new) if takes_old else (again, new + 1)
            if prices.round_s(*more) > round_s:
                break
            again, new = list(more[0]), more[1]
        return again, new

    def _new(self, number: int, standing: Standing, count: int) -> list[Configuration]:
        """What was not tried yet: in turns what is known to help some programs, and what the study proposes."""
        count = min(count, racing.MOST_ARMS - len(standing.configurations))
        if count < 1:
            return []
        known = [each for each in space.presets(self._room) if self.name(each) not in standing.configurations]
        preset = known[: (count + 1) // 2]
        tried = [*self._tried(standing), *(Tried(each, None) for each in preset)]
        seed = f"{self._tuning.head.seed}/{number}"
        found = [*preset, *self._proposed(tried, count - len(preset), seed)]
        found += known[len(preset) : len(preset) + count - len(found)]
        # A knob that sets nothing here makes twins of two points; one of them is enough.
        named = {self.name(each): each for each in found}
        known_names = {self._tuning.head.baseline, *standing.configurations}
        return [self.configuration(each) for name, each in named.items() if name not in known_names]

    def _proposed(self, tried: Sequence[Tried], count: int, seed: str) -> list[Point]:
        if self.broken is not None:
            return []
        try:
            return proposals.propose(self._room, tried, count, seed)
        except StudyBroken as error:
            self.broken = str(error)
            return []

    def name(self, point: Point) -> str:
        """How a point is written on a command line, and what its configuration is called."""
        return notation.write(point.allocator, space.environment(self._room, point))

    def configuration(self, point: Point) -> Configuration:
        """An arm of the search."""
        return configuration_for(
            self._allocators[point.allocator],
            name=self.name(point),
            environment=space.environment(self._room, point),
        )

    def _tried(self, standing: Standing) -> list[Tried]:
        """What was tried, as far as it is a point of the room."""
        found = []
        for name in standing.configurations:
            point = self._point(name)
            if point is None:
                continue
            ratios = None
            if name in standing.race:
                estimated = [racing.ratio(standing.race, each, name, standing.baseline) for each in racing.OBJECTIVES]
                ratios = _logarithms(estimated)
            found.append(Tried(point, ratios))
        return found

    def _point(self, name: str) -> Point | None:
        (asked,) = notation.read(name)
        return space.read(self._room, asked.allocator, asked.settings)


def _with_plain(found: Sequence[str], standing: Standing) -> list[str]:
    """The first, behind it its allocator as it is, which a reader would take if it does as well, then the rest."""
    first = standing.configurations[found[0]]
    plain = [
        name
        for name in standing.race
        if name != standing.baseline
        and standing.configurations[name].allocator.name == first.allocator.name
        and not standing.configurations[name].environment
    ]
    return list(dict.fromkeys([found[0], *plain, *found[1:]]))


def _logarithms(ratios: Sequence[float]) -> tuple[float, float] | None:
    import math

    if not all(0 < each < math.inf for each in ratios):
        return None
    time, memory = (math.log(each) for each in ratios)
    return time, memory
