"""Workloads that are one command but for one number: threads, the size of a block, how many blocks live.

The records hold each workload's command and not the matrix it came from, so families are found in the commands. Two
workloads are of one family where their commands, environments and folders are the same word by word, save one number
(it may stand in several places, as in ``--least 4K --most 4K``) and save how much work they were told to do: a suite
gives less of it to what takes longer. Names are not looked at: ``server-4cores-threads`` is ``--threads 8`` somewhere.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from freestone.records.schema import Workload

FEWEST = 3
"""Members that make a line worth drawing."""
WORK = frozenset({"operations", "rounds", "iterations", "pairs", "pages", "lives", "objects", "requests"})
"""Options that say how much is done and not what is done."""

_NUMBER = re.compile(r"(\d+)([KMGkmg]?)")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_BYTES = frozenset({"size", "least", "most", "bytes", "block"})


@dataclass(frozen=True)
class Member:
    """One workload and its number."""

    workload: str
    at: int


@dataclass(frozen=True)
class Family:
    """At least :data:`FEWEST` members, in ascending order of their numbers."""

    axis: str
    """What the number is: the options it is given to, ``threads``, ``least and most``; ``argument 2`` without one."""
    name: str
    """What the members' names have in common, with ``…`` for the rest."""
    members: tuple[Member, ...]
    same_work: bool
    """Whether all were told to do as much."""

    @property
    def is_bytes(self) -> bool:
        """Whether the number is a size."""
        return bool(_BYTES & set(self.axis.split(" and ")))


def families(workloads: Sequence[Workload]) -> list[Family]:
    """Every family of an experiment, in the order of their first members. A workload may belong to several.

    Of members with the same number the first stands.
    """
    found: dict[tuple[object, ...], dict[int, Workload]] = {}
    axes: dict[tuple[object, ...], str] = {}
    for workload in workloads:
        words = words_of(workload.command)
        for places, number in _axes(words):
            kept = tuple(None if place in places or is_work(words, place) else w for place, w in enumerate(words))
            key = (places, kept, workload.directory, tuple(sorted(workload.environment.items())), workload.reads)
            found.setdefault(key, {}).setdefault(number, workload)
            axes[key] = _axis(words, places)
    return [
        Family(
            axes[key],
            _in_common([each.name for each in members.values()]),
            tuple(Member(members[number].name, number) for number in sorted(members)),
            same_work=len({_work(words_of(each.command)) for each in members.values()}) == 1,
        )
        for key, members in found.items()
        if len(members) >= FEWEST
    ]


def number_of(word: str) -> int | None:
    """``64``, ``4K``, ``1G`` as numbers, sizes by powers of 1024; None for anything else."""
    match = _NUMBER.fullmatch(word)
    return int(match[1]) * _UNITS[match[2].lower()] if match else None


def words_of(command: Sequence[str]) -> list[str]:
    """The command's words, ``--size=64`` as two."""
    return [part for word in command for part in (word.split("=", 1) if word.startswith("--") else [word])]


def is_work(words: Sequence[str], place: int) -> bool:
    """Whether the word says how much is done."""
    return _option(words, place) in WORK


def _axes(words: Sequence[str]) -> Iterable[tuple[tuple[int, ...], int]]:
    """Places whose number may be the one that differs: each alone, and all that hold the same number together."""
    places: dict[int, list[int]] = {}
    for place, word in enumerate(words[1:], start=1):
        number = number_of(word)
        if number is not None and not is_work(words, place):
            places.setdefault(number, []).append(place)
    for number, mine in places.items():
        yield from (((place,), number) for place in mine)
        if len(mine) > 1:
            yield tuple(mine), number


def _axis(words: Sequence[str], places: Iterable[int]) -> str:
    return " and ".join(_option(words, place) or f"argument {place}" for place in places)


def _option(words: Sequence[str], place: int) -> str | None:
    before = words[place - 1] if place > 0 else ""
    return before.lstrip("-") if before.startswith("-") and number_of(before) is None else None


def _work(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for place, word in enumerate(words) if is_work(words, place))


def _in_common(names: Sequence[str]) -> str:
    """Word by word from both ends: ``loop-1K-all`` and ``loop-4K-all`` are ``loop-…-all``."""
    split = [re.split(r"(?<=[-_./+ ])|(?=[-_./+ ])", name) for name in names]
    shortest = min(len(words) for words in split)
    start = _agreeing(split, shortest)
    end = _agreeing([words[::-1] for words in split], shortest - start)
    return "".join([*split[0][:start], "…", *split[0][len(split[0]) - end :]])


def _agreeing(lists: Sequence[Sequence[str]], most: int) -> int:
    together = itertools.takewhile(
        lambda words: len(set(words)) == 1, zip(*(each[:most] for each in lists), strict=True)
    )
    return sum(1 for _ in together)
