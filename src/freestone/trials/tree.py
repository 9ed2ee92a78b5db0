"""What a process tree has used so far and holds now, as /proc tells it while it runs."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

_PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
"""The step of the CPU time that /proc tells of a process, in seconds."""


@dataclass(frozen=True)
class TreeReading:
    """All living processes below one, with what their own ended children have used.

    ``cpu_s`` is user and system time, in steps of the kernel's tick (10 ms) for each process; ``rss_kib`` the sum of
    resident sets, pages that several share counted for each.
    """

    cpu_s: float = 0.0
    minor_faults: int = 0
    rss_kib: int = 0
    processes: int = 0
    virtual_kib: int = 0
    largest: int | None = None
    """The process with the most resident; None where there is none."""
    ignoring: frozenset[int] = frozenset()
    """Those that ignore SIGCHLD: the kernel adds what their children used to nobody."""


@dataclass(frozen=True)
class _Process:
    pid: int
    state: str
    parent: int
    minor_faults: int
    children_minor_faults: int
    ticks: int
    children_ticks: int
    started: int
    """Ticks since the machine's start."""
    virtual_bytes: int
    rss_pages: int
    ignores_children: bool


def read(ancestor: int) -> TreeReading:
    """The tree below a process, without itself but with what it has waited for. Empty where it is gone."""
    top = _process(ancestor)
    if top is None:
        return TreeReading()
    below = _told_below(ancestor)
    if below is None:
        below = _below(ancestor, {process.pid: process for process in _processes()})
    return TreeReading(
        cpu_s=TICK_S * (top.children_ticks + sum(each.ticks + each.children_ticks for each in below)),
        minor_faults=top.children_minor_faults + sum(each.minor_faults + each.children_minor_faults for each in below),
        rss_kib=_PAGE_KIB * sum(each.rss_pages for each in below),
        processes=len(below),
        virtual_kib=sum(each.virtual_bytes for each in below) >> 10,
        largest=max(below, key=lambda each: each.rss_pages).pid if below else None,
        ignoring=frozenset(each.pid for each in below if each.ignores_children),
    )


def alone(number: int) -> TreeReading:
    """One process, without those below it. Empty where it is gone."""
    found = _process(number)
    if found is None:
        return TreeReading()
    return TreeReading(
        cpu_s=TICK_S * found.ticks,
        minor_faults=found.minor_faults,
        rss_kib=_PAGE_KIB * found.rss_pages,
        processes=1,
        virtual_kib=found.virtual_bytes >> 10,
        largest=number,
    )


def first_child(ancestor: int) -> int | None:
    """The oldest child of a process, None where it has none; by its start, since numbers begin anew."""
    mine = [process for process in _processes() if process.parent == ancestor]
    return min(mine, key=lambda each: (each.started, each.pid)).pid if mine else None


def children(parent: int) -> frozenset[int]:
    """The children of a process, those that have ended and were not waited for among them."""
    return frozenset(process.pid for process in _processes() if process.parent == parent)


def below(ancestor: int) -> list[int]:
    """The living processes below one, parents before children."""
    everybody = {process.pid: process for process in _processes()}
    return [process.pid for process in _below(ancestor, everybody) if process.state not in "ZX"]


def _below(ancestor: int, everybody: dict[int, _Process]) -> list[_Process]:
    children: dict[int, list[_Process]] = {}
    for process in everybody.values():
        children.setdefault(process.parent, []).append(process)
    found: list[_Process] = []
    front = children.get(ancestor, [])
    while front:
        found += front
        front = [child for parent in front for child in children.get(parent.pid, [])]
    return found


def _told_below(ancestor: int) -> list[_Process] | None:
    """The tree below a process as each thread's list of children has it; None where the kernel keeps none.

    That takes a fraction of a look at every process of the machine. A child that ends meanwhile may hide another: a sum
    can do without it for once, and whoever looks for what to end must not (:func:`below`).
    """
    found: list[_Process] = []
    front = [ancestor]
    while front:
        children: list[int] = []
        for parent in front:
            try:
                for task in os.listdir(f"/proc/{parent}/task"):
                    words = Path(f"/proc/{parent}/task/{task}/children").read_text(encoding="ascii")
                    children += map(int, words.split())
            except FileNotFoundError:
                if os.path.exists(f"/proc/{parent}/task"):
                    return None
            except (ProcessLookupError, PermissionError):
                continue  # it has just ended, or is somebody else's
        below = [process for child in children if (process := _process(child)) is not None]
        found += below
        front = [process.pid for process in below]
    return found


def _processes() -> list[_Process]:
    numbers = [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]
    return [process for number in numbers if (process := _process(number)) is not None]


def _process(number: int) -> _Process | None:
    try:
        # The name in parentheses may hold anything, closing parentheses too.
        fields = Path(f"/proc/{number}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None  # it has just ended
    numbers = [int(field) for field in fields[1:22]]
    state, rss_pages = fields[0], numbers[20]
    if state == "Z" and (living := _living_thread(f"/proc/{number}")) is not None:
        state, rss_pages = living
    return _Process(
        pid=number,
        state=state,
        parent=numbers[0],
        minor_faults=numbers[6],
        children_minor_faults=numbers[7],
        ticks=numbers[10] + numbers[11],
        children_ticks=numbers[12] + numbers[13],
        started=numbers[18],
        virtual_bytes=numbers[19],
        rss_pages=rss_pages,
        ignores_children=bool(int(fields[30]) >> (signal.SIGCHLD - 1) & 1),  # the ignored signals below 32
    )


def _living_thread(process: str) -> tuple[str, int] | None:
    """State and resident pages by a thread that still runs, None where none does.

    A first thread that has left by ``pthread_exit`` is a zombie without memory, and what /proc tells of its process as
    a whole is that thread's, though others live.

    Args:
        process: its folder in /proc.
    """
    try:
        threads = [entry.path for entry in os.scandir(f"{process}/task")]
    except OSError:
        return None  # it has just ended
    for thread in threads:
        try:
            state = Path(thread, "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
            pages = int(Path(thread, "statm").read_text().split()[1])
        except OSError:
            continue
        if state not in "ZX":
            return state, pages
    return None
