"""Reads what ``valgrind --tool=cachegrind`` writes: references and misses, by function. Pure.

The format is that of the manual's "Cachegrind Output File Format": a ``cmd:`` and an ``events:`` line, then ``fl=`` and
``fn=`` lines, each with counts by source line below it, then a ``summary:`` that the counts have to add up to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

INSTRUCTIONS, READS, WRITES = "Ir", "Dr", "Dw"
D1_MISSES = ("D1mr", "D1mw")
LL_DATA_MISSES = ("DLmr", "DLmw")

NEEDED = (INSTRUCTIONS, READS, WRITES, *D1_MISSES, *LL_DATA_MISSES)
"""What ``--cache-sim=yes`` counts."""


class Damaged(ValueError):
    """It is no such file, or not all of one; the message is one line."""


@dataclass
class Function:
    """What was counted in one function, wherever its lines stand: inlined ones are in other files."""

    name: str
    file: str
    """Source file of most of its instructions; ``???`` where there is no debugging information."""
    counts: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Profile:
    """Of one process, or the sum over several. ``functions`` by name, those with most instructions first."""

    caches: tuple[str, ...]
    totals: dict[str, int]
    functions: dict[str, Function]


def parse(text: str) -> Profile:
    """One file.

    Raises:
        Damaged: it breaks off, makes no sense in a line, or does not add up.
    """
    caches: list[str] = []
    events: list[str] = []
    summary: list[int] | None = None
    counted: dict[tuple[str, str], list[int]] = {}
    totals: list[int] = []
    file, place = "", None
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        if summary is not None:
            raise Damaged(f"line {number} stands behind the summary")
        key, separator, rest = line.partition(":")
        if line.startswith("fl="):
            file, place = line[3:], None
        elif line.startswith("fn=") and events:
            place = counted.setdefault((line[3:], file), [0] * len(events))
        elif line[:1].isdigit() and place is not None:
            counts = _counts(line.split()[1:], len(events), number)
            for index, count in enumerate(counts):
                place[index] += count
                totals[index] += count
        elif not separator or key not in ("desc", "cmd", "events", "summary"):
            raise Damaged(f"line {number} makes no sense: {line[:60]!r}")
        elif key == "desc":
            caches.append(" ".join(rest.split()))
        elif key == "events":
            events = rest.split()
            totals = [0] * len(events)
        elif key == "summary":
            summary = _counts(rest.split(), len(events), number)
    if summary is None:
        raise Damaged("it breaks off: there is no summary")
    missing = [name for name in NEEDED if name not in events]
    if missing:
        raise Damaged(f"it has no {', '.join(missing)}")
    if summary != totals:
        raise Damaged("its lines do not add up to its summary")
    return Profile(tuple(caches), dict(zip(events, totals, strict=True)), _by_function(counted, events))


def merged(profiles: Iterable[Profile]) -> Profile:
    """The sum over processes."""
    caches: tuple[str, ...] = ()
    totals: dict[str, int] = {}
    functions: dict[str, Function] = {}
    for profile in profiles:
        caches = caches or profile.caches
        _add(totals, profile.totals)
        for name, function in profile.functions.items():
            _add(functions.setdefault(name, Function(name, function.file)).counts, function.counts)
    return Profile(caches, totals, _most_first(functions))


def _counts(words: list[str], events: int, number: int) -> list[int]:
    """The counts of a line; those left out at its end, and dots, are zero."""
    try:
        counts = [0 if word == "." else int(word) for word in words]
    except ValueError as error:
        raise Damaged(f"line {number} holds what is no count") from error
    if len(counts) > events or any(count < 0 for count in counts):
        raise Damaged(f"line {number} holds what no event counts")
    return counts + [0] * (events - len(counts))


def _by_function(counted: dict[tuple[str, str], list[int]], events: list[str]) -> dict[str, Function]:
    functions: dict[str, Function] = {}
    most: dict[str, int] = {}
    at = events.index(INSTRUCTIONS)
    for (name, file), counts in counted.items():
        function = functions.setdefault(name, Function(name, file))
        _add(function.counts, dict(zip(events, counts, strict=True)))
        if counts[at] > most.get(name, -1):
            most[name], function.file = counts[at], file
    return _most_first(functions)


def _most_first(functions: dict[str, Function]) -> dict[str, Function]:
    order = sorted(functions.values(), key=lambda each: (-each.counts.get(INSTRUCTIONS, 0), each.name))
    return {each.name: each for each in order}


def _add(totals: dict[str, int], more: dict[str, int]) -> None:
    for name, count in more.items():
        totals[name] = totals.get(name, 0) + count
