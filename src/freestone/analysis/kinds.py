"""Machines of one kind: alike in what decides which allocator suits them. Pure functions.

A kind is a way to read many machines at once, and no reason to pool them: each keeps its own figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from freestone.records.schema import Machine

Fact = str | int | float | bool | None

Kind = tuple[Fact, ...]
"""The values of :data:`FACTS` on a machine."""


def _pages(size: Fact) -> str:
    return f"{int(size) // 1024} KiB pages" if isinstance(size, int) else "pages unknown"


FACTS: Final[Mapping[str, Callable[[Fact], str]]] = {
    "cpu": lambda fact: str(fact or "unknown processor"),
    "architecture": str,
    "cores_allowed": lambda fact: f"{fact} CPU{'' if fact == 1 else 's'}",
    "page_size": _pages,
    "thp": lambda fact: f"huge pages {fact}",
    "mthp": lambda fact: f"mTHP {fact}",
    "overcommit": lambda fact: f"overcommit {fact}",
    "cgroup_memory_max": lambda fact: f"memory limit {fact}",
    "libc": str,
}
"""What makes a kind, and how it is said. The kernel's version, sizes of memory and clocks make none: a fleet in which
every machine is a kind of its own cannot be read."""


def kind_of(machine: Machine) -> Kind:
    """Which kind a machine is of."""
    return tuple(machine.facts.get(name) for name in FACTS)


def names(kinds: Iterable[Kind]) -> dict[Kind, str]:
    """What to call each of some kinds: the processor, and whatever else is not the same in all of them."""
    known = list(dict.fromkeys(kinds))
    telling = [
        number for number, name in enumerate(FACTS) if name == "cpu" or len({each[number] for each in known}) > 1
    ]
    words = list(FACTS.values())
    return {each: ", ".join(words[number](each[number]) for number in telling) for each in known}
