"""Orders of malloc and free: what each costs, and what it costs against last-in first-out. Pure functions.

The program ``patterns`` frees its blocks in an order and says how long that took, how many operations it made, and how
long its loop takes over an allocator that does nothing: the floor. Costs are those of one operation, a malloc or a
free. An order is held against LIFO net of the floor of each. As others published it, the order is drawn anew inside the
timed loop and nothing is taken off; that stands beside it under a name of its own.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from freestone.analysis.statistics import paired_ratio
from freestone.records.schema import Experiment, Summary, TrialRecord, Workload
from freestone.reports.families import is_work, number_of, words_of
from freestone.reports.numerals import bytes_in_words, count_in_words
from freestone.reports.shown import counting

PROGRAM = "patterns"
LIFO = "lifo"

_SHUFFLE = "--shuffle-inside"


@dataclass(frozen=True)
class Member:
    """A workload and the order in which it frees."""

    workload: str
    order: str
    shuffled: bool = False
    """Whether the order is drawn inside the timed loop."""

    @property
    def title(self) -> str:
        """``random``, ``random, shuffle on the clock``."""
        return f"{self.order}, shuffle on the clock" if self.shuffled else self.order


@dataclass(frozen=True)
class Orders:
    """Workloads that are one command but for the order, LIFO first; behind them those with the shuffle on the clock."""

    size: int | None
    """Bytes of a block; None where the command leaves it to the program."""
    live: int | None
    """Blocks at a time, likewise."""
    other: tuple[str, ...]
    """What else the commands have in common, such as ``--threads 2``."""
    members: tuple[Member, ...]

    @property
    def title(self) -> str:
        """``16 B, 10 k live``."""
        size = "" if self.size is None else bytes_in_words(self.size)
        live = "" if self.live is None else f"{count_in_words(self.live)} live"
        return ", ".join(word for word in (size, live, " ".join(self.other)) if word) or "as the program has it"

    def find(self, order: str, *, shuffled: bool = False) -> Member | None:
        """The member of an order; None where there is none."""
        return next((each for each in self.members if (each.order, each.shuffled) == (order, shuffled)), None)


@dataclass(frozen=True)
class Trial:
    """Nanoseconds of one malloc or one free, and of that the floor; None where the program tells none."""

    gross: float
    floor: float | None

    @property
    def net(self) -> float | None:
        """Without the floor; may be negative."""
        return None if self.floor is None else self.gross - self.floor


@dataclass(frozen=True)
class Cost:
    """One configuration in one order: trials by round, at least one."""

    trials: Mapping[int, Trial]

    @property
    def gross(self) -> float:
        """The median, with the floor in it."""
        return statistics.median(each.gross for each in self.trials.values())

    @property
    def million_a_second(self) -> float:
        """Millions of mallocs and frees in a second, at the median."""
        return 1e3 / self.gross

    @property
    def floor(self) -> float | None:
        """The median of the floors; None where a trial has none."""
        floors = self._floors()
        return statistics.median(floors) if floors else None

    @property
    def net(self) -> float | None:
        """The median without the floor; None where the floor eats it.

        It does where in some round nothing is left, or where what is left is no more than the floors themselves differ
        from round to round, from their first quartile to their third.
        """
        nets = [each.net for each in self.trials.values()]
        left = [net for net in nets if net is not None and net > 0]
        if len(left) < len(nets) or statistics.median(left) <= _spread(self._floors()):
            return None
        return statistics.median(left)

    def _floors(self) -> list[float]:
        floors = [each.floor for each in self.trials.values()]
        known = [floor for floor in floors if floor is not None]
        return known if len(known) == len(floors) else []


@dataclass(frozen=True)
class Degradation:
    """How many times LIFO's time an order takes: the geometric mean over rounds."""

    value: float
    interval: tuple[float, float] | None
    """95 %; None where the rounds are too few, or nobody was there to tell."""
    pairs: int


def orders(workloads: Sequence[Workload]) -> list[Orders]:
    """All of an experiment that have two orders or more, from the commands; names are not looked at.

    How much work they were told to do may differ. Of two workloads in the same order the first stands.
    """
    found: dict[tuple[object, ...], dict[tuple[str, bool], str]] = {}
    shared: dict[tuple[object, ...], list[str]] = {}
    for workload in workloads:
        words = words_of(workload.command)
        order = _after("--order", words)
        if order is None or PurePath(words[0]).name != PROGRAM:
            continue
        rest = list(_in_common(words))
        key = (words[0], *rest, None, workload.directory, tuple(sorted(workload.environment.items())), workload.reads)
        found.setdefault(key, {}).setdefault((order, _SHUFFLE in words), workload.name)
        shared[key] = rest
    return [
        _family(shared[key], [Member(name, order, shuffled) for (order, shuffled), name in members.items()])
        for key, members in found.items()
        if len({order for order, shuffled in members if not shuffled}) > 1
    ]


def costs(
    experiment: Experiment, summary: Summary, records: Iterable[TrialRecord], family: Orders
) -> dict[str, dict[Member, Cost]]:
    """What each configuration has a result for, in the order of the experiment."""
    members = {each.workload: each for each in family.members}
    trials: dict[str, dict[Member, dict[int, Trial]]] = {each.name: {} for each in experiment.configurations}
    for record in counting(summary, records, members):
        if not record.repeat:
            trial = trial_of(record)
            if trial is not None:
                mine = trials[record.configuration].setdefault(members[record.workload], {})
                mine[record.round] = trial
    return {
        name: {member: Cost(by_member[member]) for member in family.members if member in by_member}
        for name, by_member in trials.items()
        if by_member
    }


def trial_of(record: TrialRecord) -> Trial | None:
    """What the program said of one operation; None where it did not say how many there were and how long they took."""
    said = record.figures or {}
    seconds, operations, floor = (said.get(name, math.nan) for name in ("seconds", "operations", "floor_seconds"))
    if not (0 < seconds < math.inf and 0 < operations < math.inf):
        return None
    return Trial(seconds / operations * 1e9, floor / operations * 1e9 if 0 <= floor < math.inf else None)


def degradation(one: Cost, lifo: Cost) -> Degradation | None:
    """An order's time net of its floor as ratio to LIFO's net of LIFO's, paired within rounds.

    None where a floor eats what it is taken off, or no round has both.
    """
    if one.net is None or lifo.net is None:
        return None
    rounds = sorted(one.trials.keys() & lifo.trials.keys())
    return _ratio([(one.trials[each].net, lifo.trials[each].net) for each in rounds])


def as_published(shuffled: Cost, lifo: Cost) -> Degradation | None:
    """The shuffle on the clock as ratio to LIFO, nothing taken off; otherwise as :func:`degradation`."""
    rounds = sorted(shuffled.trials.keys() & lifo.trials.keys())
    return _ratio([(shuffled.trials[each].gross, lifo.trials[each].gross) for each in rounds])


def against_lifo(family: Orders, costs: Mapping[str, Mapping[Member, Cost]]) -> dict[str, dict[Member, Degradation]]:
    """Each configuration in each order but LIFO, as far as there is a ratio: the shuffle on the clock as published."""
    lifo = family.find(LIFO)
    if lifo is None:
        return {name: {} for name in costs}
    return {
        name: {
            member: ratio
            for member, cost in found.items()
            if member != lifo
            and lifo in found
            and (ratio := (as_published if member.shuffled else degradation)(cost, found[lifo])) is not None
        }
        for name, found in costs.items()
    }


def _ratio(pairs: Sequence[tuple[float | None, float | None]]) -> Degradation | None:
    whole = [(one, other) for one, other in pairs if one is not None and other is not None]
    if not whole:
        return None
    ones, others = [one for one, _ in whole], [other for _, other in whole]
    interval = paired_ratio(ones, others)
    if interval is None:
        return None
    ends = (interval.low, interval.high) if interval.high < math.inf else None
    return Degradation(interval.value, ends, len(whole))


def _spread(values: Sequence[float]) -> float:
    if len(values) < 2:
        return 0.0
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return third - first


def _family(words: Sequence[str], members: Sequence[Member]) -> Orders:
    size, live = _after("--size", words), _after("--live", words)
    other = [
        word
        for place, word in enumerate(words)
        if word not in ("--size", "--live") and not (place and words[place - 1] in ("--size", "--live"))
    ]
    return Orders(
        number_of(size) if size is not None else None,
        number_of(live) if live is not None else None,
        tuple(other),
        tuple(sorted(members, key=lambda each: (each.shuffled, each.order != LIFO))),
    )


def _in_common(words: Sequence[str]) -> Iterable[str]:
    """The words behind the program's without the order, the shuffle and how much work was asked for."""
    for place, word in enumerate(words[1:], start=1):
        following = words[place + 1 : place + 2]
        is_option_of_work = word.startswith("-") and bool(following) and is_work(words, place + 1)
        if word in ("--order", _SHUFFLE) or words[place - 1] == "--order" or is_option_of_work or is_work(words, place):
            continue
        yield word


def _after(option: str, words: Sequence[str]) -> str | None:
    return next((two for one, two in itertools.pairwise(words) if one == option), None)
