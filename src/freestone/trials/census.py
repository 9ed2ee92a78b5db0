"""Program images of a tree, from the events the kernel reported. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Image:
    """One program in one process: from an exec to the next exec or to the end of the process.

    Times are seconds on the monotonic clock. A fork that executes nothing is part of its parent's image.
    """

    pid: int
    parent: int
    begin_s: float
    end_s: float
    name: str
    """The kernel's short name (15 bytes)."""
    exe: str | None
    """Path of the program file; None where the kernel would not say."""


@dataclass(frozen=True, slots=True)
class Ending:
    """One process from its fork (the first one: from its exec) to its end."""

    pid: int
    born_s: float
    ended_s: float
    program: str
    """Path, or the kernel's short name, of what it executed last; of a fork that executed nothing, its parent's."""
    parent: int = 0
    """Who forked it; 0 for the first one."""


def endings(events: Iterable[Sequence[Any]]) -> list[Ending]:
    """The processes of a tree that have ended, in the order in which they did. Args are those of :func:`images`."""
    found: list[Ending] = []
    born: dict[int, float] = {}
    programs: dict[int, str] = {}
    parents: dict[int, int] = {}
    for event in events:
        match list(event):
            case ["fork", int() | float() as at_s, int() as pid, int() as parent]:
                born[pid], programs[pid], parents[pid] = at_s, programs.get(parent, ""), parent
            case ["exec", int() | float() as at_s, int() as pid, str() as name, str() | None as exe]:
                born.setdefault(pid, at_s)
                programs[pid] = exe or name
            case ["exit", int() | float() as at_s, int() as pid] if pid in born:
                found.append(Ending(pid, born.pop(pid), at_s, programs.pop(pid), parents.pop(pid, 0)))
    return found


def images(events: Iterable[Sequence[Any]]) -> tuple[list[Image], list[str]]:
    """The images of a tree in the order of their beginning, and complaints about events that make no sense.

    An event is ``["fork", s, pid, parent]``, ``["exec", s, pid, name, exe | null]`` or ``["exit", s, pid]``, in the
    order of time. Exits of processes that executed nothing, and of threads, are passed over.
    """
    begun: list[Image] = []
    current: dict[int, int] = {}
    parents: dict[int, int] = {}
    complaints: list[str] = []

    def close(pid: int, at_s: float) -> None:
        index = current.pop(pid, None)
        if index is not None:
            begun[index] = replace(begun[index], end_s=at_s)

    for event in events:
        match list(event):
            case ["fork", int() | float() as at_s, int() as pid, int() as parent]:
                close(pid, at_s)  # a number used again
                parents[pid] = parent
            case ["exec", int() | float() as at_s, int() as pid, str() as name, str() | None as exe]:
                close(pid, at_s)
                current[pid] = len(begun)
                begun.append(Image(pid, parents.get(pid, 0), at_s, math.inf, name, exe))
            case ["exit", int() | float() as at_s, int() as pid]:
                close(pid, at_s)
            case other:
                complaints.append(f"the census holds an event that makes no sense: {str(other)[:80]}")
    return begun, complaints
