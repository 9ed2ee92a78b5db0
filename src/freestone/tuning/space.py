"""The points of the search: an allocator with a value for each of its knobs, and the settings that say so. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from freestone.records.schema import Allocator
from freestone.tuning.knobs import AS_IS, KNOBS, PRESETS, SEPARATORS, Knob

Choose = Callable[[str, Sequence[str], bool], str]
"""Of what is to be chosen: its name, its values, whether they stand in an order; returns one of the values."""

Room = Mapping[str, tuple[Knob, ...]]
"""By the name of each allocator that takes part, the knobs that it knows."""


@dataclass(frozen=True)
class Point:
    """An allocator and what was chosen of its knobs, in their order; knobs that were not asked for are not in it."""

    allocator: str
    values: tuple[tuple[str, str], ...] = ()


def family(allocator: str) -> str | None:
    """Whose knobs an allocator has, by its name or that of its file; None where none are known."""
    name = allocator.lower().removeprefix("lib")
    return next((each for each in KNOBS if name.startswith(each)), None)


def knobs(allocator: Allocator, content: bytes) -> tuple[Knob, ...]:
    """The knobs that a library knows.

    A setting that it does not know would be a twin of itself, and cost trials.

    Args:
        content: of its file, in which the names of most of its settings stand.
    """
    kin = family(allocator.name)
    if kin is None:
        return ()
    version = tuple(int(part) for part in re.findall(r"\d+", allocator.version or "")[:2])
    known = [
        each
        for each in KNOBS[kin]
        if (each.word is None or each.word.encode() in content) and (each.since is None or version >= each.since)
    ]
    names = {each.name for each in known}
    return tuple(each for each in known if each.under is None or each.under in names)


def draw(room: Room, choose: Choose) -> Point:
    """A point of which ``choose`` says every part."""
    allocator = choose("allocator", list(room), False)
    chosen: dict[str, str] = {}
    for knob in room[allocator]:
        if _is_asked(knob, chosen):
            chosen[knob.name] = choose(f"{allocator}.{knob.name}", list(knob.values), knob.ordered)
    return Point(allocator, tuple(chosen.items()))


def environment(room: Room, point: Point) -> dict[str, str]:
    """The variables that a point stands for."""
    chosen = dict(point.values)
    found: dict[str, str] = {}
    for knob in room[point.allocator]:
        for variable, entry in knob.values[chosen[knob.name]].items() if knob.name in chosen else ():
            before = found.get(variable)
            found[variable] = entry if before is None else f"{before}{SEPARATORS[variable]}{entry}"
    return found


def read(room: Room, allocator: str, variables: Mapping[str, str]) -> Point | None:
    """The point that variables stand for; None where they say anything else."""
    entries = {
        (name, entry)
        for name, value in variables.items()
        for entry in (value.split(SEPARATORS[name]) if name in SEPARATORS else [value])
    }
    if allocator not in room:
        return None
    chosen: dict[str, str] = {}
    said: set[tuple[str, str]] = set()
    for knob in room[allocator]:
        if not _is_asked(knob, chosen):
            continue
        fitting = [label for label, sets in knob.values.items() if sets and set(sets.items()) <= entries]
        if not fitting and AS_IS not in knob.values:
            return None
        chosen[knob.name] = fitting[0] if fitting else AS_IS
        said |= set(knob.values[chosen[knob.name]].items())
    return Point(allocator, tuple(chosen.items())) if said == entries else None


def plain(room: Room, allocator: str) -> Point:
    """An allocator with all its knobs as they are."""
    return preset(room, allocator, {})


def presets(room: Room) -> Iterator[Point]:
    """What is known to help some programs, where its knobs are known here; allocators take turns."""
    rows = [[(name, each) for each in PRESETS.get(family(name) or "", ())] for name in room]
    for turn in range(max(map(len, rows), default=0)):
        for row in rows:
            if turn < len(row):
                name, wanted = row[turn]
                if wanted.keys() <= {knob.name for knob in room[name]}:
                    yield preset(room, name, wanted)


def preset(room: Room, allocator: str, wanted: Mapping[str, str]) -> Point:
    """An allocator with some knobs set, and the others as they are."""
    chosen: dict[str, str] = {}
    for knob in room[allocator]:
        if _is_asked(knob, chosen):
            chosen[knob.name] = wanted.get(knob.name, AS_IS)
    return Point(allocator, tuple(chosen.items()))


def _is_asked(knob: Knob, chosen: Mapping[str, str]) -> bool:
    return knob.under is None or chosen.get(knob.under, AS_IS) != AS_IS
