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
    if size is None:
        return "pages unknown"
    return (
        f"{size // 1024} KiB pages" if isinstance(size, int) and size > 0 and size % 1024 == 0 else f"pages of {size}"
    )


def _after(word: str) -> Callable[[Fact], str]:
    return lambda fact: f"{word} {_UNKNOWN if fact is None else fact}"


_UNKNOWN: Final = "unknown"

FACTS: Final[Mapping[str, Callable[[Fact], str]]] = {
    "cpu": lambda fact: str(fact or "unknown processor"),
    "architecture": lambda fact: str(fact or "unknown architecture"),
    "cores_allowed": lambda fact: "CPUs unknown" if fact is None else f"{fact} CPU{'' if fact == 1 else 's'}",
    "cgroup_cpu_max": lambda fact: "no CPU quota" if fact is None else f"quota of {fact} CPUs",
    "page_size": _pages,
    "thp": _after("huge pages"),
    "mthp": _after("mTHP"),
    "overcommit": _after("overcommit"),
    "cgroup_memory_max": lambda fact: "no memory limit" if fact is None else f"memory limit {fact}",
    "libc": lambda fact: str(fact or "unknown libc"),
}
"""What makes a kind, and how it is said. The kernel's version, sizes of memory and clocks make none: a fleet in which
every machine is a kind of its own cannot be read."""


_NO_LIMIT: Final = "max"
"""What a control group says without a limit, which is as good as no control group."""

_CPU: Final = list(FACTS).index("cpu")


def kind_of(machine: Machine) -> Kind:
    """Which kind a machine is of."""
    facts = {name: machine.facts.get(name) for name in FACTS}
    facts["cgroup_cpu_max"] = _quota(facts["cgroup_cpu_max"])
    return tuple(None if fact == _NO_LIMIT else fact for fact in facts.values())


def _quota(limit: Fact) -> Fact:
    """A limit of CPU time, which is recorded as ``quota period`` in microseconds, as a number of CPUs."""
    parts = str(limit).split()
    if len(parts) != 2 or not all(part.isdecimal() and int(part) > 0 for part in parts):
        return limit
    return f"{int(parts[0]) / int(parts[1]):g}"


def names(kinds: Iterable[Kind]) -> dict[Kind, str]:
    """What to call each of some kinds: the processor, and what tells it from others with the same one; a number where
    that reads the same."""
    known = list(dict.fromkeys(kinds))
    found: dict[Kind, str] = {}
    for kind in known:
        alike = [each for each in known if each[_CPU] == kind[_CPU]]
        telling = [number for number in range(len(FACTS)) if len({each[number] for each in alike}) > 1]
        said = ", ".join(_said(kind, number) for number in (_CPU, *telling))
        name, number = said, 1
        while name in found.values():
            number += 1
            name = f"{said} ({number})"
        found[kind] = name
    return found


def described(kind: Kind) -> str:
    """All that makes a kind, but for the processor; what a machine does not state is left out."""
    return ", ".join(_said(kind, number) for number in range(len(FACTS)) if number != _CPU and kind[number] is not None)


def _said(kind: Kind, number: int) -> str:
    return list(FACTS.values())[number](kind[number])
