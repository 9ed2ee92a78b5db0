"""What a process tree has used so far and holds now, as the kernel tells it while it runs.

No look at a tree is of one moment. Parents are looked at before their children: a child that ends meanwhile and is
waited for is in neither, so a look may lack what it used, and never counts anybody twice. Two looks in a row between
which nobody waited for anybody have lost nobody; one looks until there are two such.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from freestone.trials import process
from freestone.trials.process import Process

_PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024

_MOST_LOOKS = 8


Rounded = tuple[int, int, tuple[float, int, int]]
"""A sum of ended children that the kernel shows in ticks: whose (a number and its start), and how it stands."""


@dataclass(frozen=True)
class TreeReading:
    """All living processes below one, with what their own ended children have used.

    ``cpu_s`` is user and system time; ``rss_kib`` the sum of resident sets, pages that several share counted for each.
    """

    cpu_s: float = 0.0
    cpu_lacks_s: float = 0.0
    """By how much ``cpu_s`` may be too small: where processes have waited for children, whose sum the kernel shows in
    steps of 10 ms; and where children ended at every look, by how much the looks differ."""
    rounded: frozenset[Rounded] = frozenset()
    """Sums of children in it, each of which lacks the same as long as it stays the same."""
    minor_faults: int = 0
    rss_kib: int = 0
    processes: int = 0
    virtual_kib: int = 0
    largest: int | None = None
    """The process with the most resident; None where there is none."""
    ignoring: frozenset[int] = frozenset()
    """Those that ignore SIGCHLD: the kernel adds what their children used to nobody."""


class Processes(Protocol):
    """Whom to ask for processes; /proc, or what stands for it."""

    def process(self, number: int) -> Process | None:
        """One by its number; None where it has ended."""

    def children(self, number: int) -> list[int] | None:
        """Its children's numbers; None where the kernel keeps no lists of children."""

    def everybody(self) -> list[Process]:
        """All of the machine."""


@dataclass(frozen=True)
class _Look:
    """The ancestor, and those below it, parents before children."""

    top: Process
    below: Sequence[Process]

    @property
    def waited(self) -> dict[tuple[int, int], tuple[float, int, int]]:
        return {(each.pid, each.started): each.waited for each in (self.top, *self.below)}

    def lost_nobody(self, later: _Look) -> bool:
        """Whether all that were there are there in a later look, and none has waited for a child in between."""
        return self.waited.items() <= later.waited.items()


def read(ancestor: int, processes: Processes | None = None) -> TreeReading:
    """The tree below a process, without itself but with what it has waited for. Empty where it is gone."""
    whom = _Proc() if processes is None else processes
    looks: list[_Look] = []
    while len(looks) < _MOST_LOOKS:
        found = _look(ancestor, whom)
        if found is None:
            break
        looks.append(found)
        if len(looks) > 1 and looks[-2].lost_nobody(found):
            return _largest(looks[-2:])
    if not looks:
        return TreeReading()
    reading, sums = _largest(looks), [_sum(each).cpu_s for each in looks]
    return replace(reading, cpu_lacks_s=reading.cpu_lacks_s + max(sums) - min(sums))


def alone(number: int) -> TreeReading:
    """One process, without those below it. Empty where it is gone."""
    found = process.look(number)
    if found is None:
        return TreeReading()
    return TreeReading(
        cpu_s=found.cpu_s,
        cpu_lacks_s=found.cpu_lacks_s,
        minor_faults=found.minor_faults,
        rss_kib=_PAGE_KIB * found.rss_pages,
        processes=1,
        virtual_kib=found.virtual_bytes >> 10,
        largest=number,
    )


def first_child(ancestor: int) -> int | None:
    """The oldest child of a process, None where it has none; by its start, since numbers begin anew."""
    mine = [each for each in _Proc().everybody() if each.parent == ancestor]
    return min(mine, key=lambda each: (each.started, each.pid)).pid if mine else None


def children(parent: int) -> frozenset[int]:
    """The children of a process, those that have ended and were not waited for among them."""
    return frozenset(each.pid for each in _Proc().everybody() if each.parent == parent)


def below(ancestor: int) -> list[int]:
    """The living processes below one, parents before children."""
    return [each.pid for each in _below(ancestor, _Proc().everybody()) if each.state not in "ZX"]


def _largest(looks: Sequence[_Look]) -> TreeReading:
    """The sum of the look that lacks least: none holds too much. Who ignores SIGCHLD does so by any of them."""
    sums = [_sum(each) for each in looks]
    reading = max(reversed(sums), key=lambda each: each.cpu_s)
    faults = max(each.minor_faults for each in sums)
    return replace(reading, minor_faults=faults, ignoring=frozenset().union(*(each.ignoring for each in sums)))


def _sum(look: _Look) -> TreeReading:
    top, below = look.top, look.below
    return TreeReading(
        cpu_s=top.children_cpu_s + math.fsum(each.cpu_s + each.children_cpu_s for each in below),
        cpu_lacks_s=top.children_cpu_lacks_s
        + math.fsum(each.cpu_lacks_s + each.children_cpu_lacks_s for each in below),
        rounded=frozenset((each.pid, each.started, each.waited) for each in (top, *below) if any(each.waited)),
        minor_faults=top.children_minor_faults + sum(each.minor_faults + each.children_minor_faults for each in below),
        rss_kib=_PAGE_KIB * sum(each.rss_pages for each in below),
        processes=len(below),
        virtual_kib=sum(each.virtual_bytes for each in below) >> 10,
        largest=max(below, key=lambda each: each.rss_pages).pid if below else None,
        ignoring=frozenset(each.pid for each in below if each.ignores_children),
    )


def _look(ancestor: int, whom: Processes) -> _Look | None:
    top = whom.process(ancestor)
    if top is None:
        return None
    found = _told_below(ancestor, whom)
    if found is None:
        # In the order of their numbers, a child may have been seen before a parent that had waited for it by then.
        order = [each.pid for each in _below(ancestor, whom.everybody())]
        top = whom.process(ancestor)
        found = [each for number in order if (each := whom.process(number)) is not None]
    return None if top is None else _Look(top, found)


def _below(ancestor: int, everybody: Iterable[Process]) -> list[Process]:
    children: dict[int, list[Process]] = {}
    for each in everybody:
        children.setdefault(each.parent, []).append(each)
    found: list[Process] = []
    front = children.get(ancestor, [])
    while front:
        found += front
        front = [child for parent in front for child in children.get(parent.pid, [])]
    return found


def _told_below(ancestor: int, whom: Processes) -> list[Process] | None:
    """The tree below a process as the lists of children have it; None where the kernel keeps none.

    That takes a fraction of a look at every process of the machine. A child that ends meanwhile may hide another: a sum
    is read again (:func:`read`), and whoever looks for what to end must not do it so (:func:`below`).
    """
    found: list[Process] = []
    front, seen = [ancestor], {ancestor}
    while front:
        below: list[Process] = []
        for parent in front:
            numbers = whom.children(parent)
            if numbers is None:
                return None
            # A child whose parent has just ended stands in another's list as well.
            new = [number for number in dict.fromkeys(numbers) if number not in seen]
            seen.update(new)
            below += [each for number in new if (each := whom.process(number)) is not None]
        found += below
        front = [each.pid for each in below]
    return found


class _Proc:
    """The processes of this machine."""

    def process(self, number: int) -> Process | None:
        return process.look(number)

    def children(self, number: int) -> list[int] | None:
        found: list[int] = []
        try:
            threads = [entry.path for entry in os.scandir(f"/proc/{number}/task")]
        except OSError:
            return found  # it has just ended, or is somebody else's
        for thread in threads:
            try:
                found += map(int, Path(thread, "children").read_text(encoding="ascii").split())
            except FileNotFoundError:
                if os.path.exists(thread):
                    return None
            except OSError:
                continue  # likewise
        return found

    def everybody(self) -> list[Process]:
        numbers = [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]
        return [found for number in numbers if (found := process.look(number)) is not None]
