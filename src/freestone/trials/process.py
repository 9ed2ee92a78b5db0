"""One process as /proc and its clock tell it while it lives."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
"""The step of the CPU time that /proc tells of a process, in seconds."""

SHOWN_ROUNDED_S = 2 * TICK_S
"""What a sum of two times lacks at most that the kernel rounds down to ticks apiece: in the program, in the kernel."""


@dataclass(frozen=True)
class Process:
    """A process. Memory is in the kernel's pages, processor time is user and system time in seconds.

    What it used itself is exact (``cpu_lacks_s`` is 0) where its clock can be read: nanoseconds, of threads that have
    ended too. Otherwise, and always of children that it has waited for, the kernel's sums are exact and shown in ticks,
    so that ``cpu_s`` and ``children_cpu_s`` are too small by less than what lacks at most.
    """

    pid: int
    started: int
    """Ticks since the machine's start: with ``pid``, whom a number means that is given again."""
    state: str = "S"
    parent: int = 0
    minor_faults: int = 0
    children_minor_faults: int = 0
    children_major_faults: int = 0
    cpu_s: float = 0.0
    cpu_lacks_s: float = 0.0
    children_cpu_s: float = 0.0
    virtual_bytes: int = 0
    rss_pages: int = 0
    ignores_children: bool = False
    """Whether it ignores SIGCHLD."""

    @property
    def waited(self) -> tuple[float, int, int]:
        """Changes with every child that it waits for: no child with memory of its own lives without a fault."""
        return self.children_cpu_s, self.children_minor_faults, self.children_major_faults

    @property
    def children_cpu_lacks_s(self) -> float:
        """What ``children_cpu_s`` lacks at most; nothing where it has waited for nobody."""
        return SHOWN_ROUNDED_S if any(self.waited) else 0.0


def look(number: int) -> Process | None:
    """A process by its number; None where it has ended."""
    try:
        # The name in parentheses may hold anything, closing parentheses too.
        fields = Path(f"/proc/{number}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    numbers = [int(field) for field in fields[1:22]]
    state, rss_pages = fields[0], numbers[20]
    if state == "Z" and (living := _living_thread(f"/proc/{number}")) is not None:
        state, rss_pages = living
    clock_s = _clock_s(number)
    return Process(
        pid=number,
        started=numbers[18],
        state=state,
        parent=numbers[0],
        minor_faults=numbers[6],
        children_minor_faults=numbers[7],
        children_major_faults=numbers[9],
        cpu_s=TICK_S * (numbers[10] + numbers[11]) if clock_s is None else clock_s,
        cpu_lacks_s=SHOWN_ROUNDED_S if clock_s is None else 0.0,
        children_cpu_s=TICK_S * (numbers[12] + numbers[13]),
        virtual_bytes=numbers[19],
        rss_pages=rss_pages,
        ignores_children=bool(int(fields[30]) >> (signal.SIGCHLD - 1) & 1),  # the ignored signals below 32
    )


def _clock_s(number: int) -> float | None:
    """What all its threads have used, those that have ended too; None where the kernel does not tell it.

    The number of the clock is the one that ``clock_getcpuclockid`` makes, which Python lacks. The scheduler's sum in
    /proc/PID/schedstat would lack what threads used that have ended, and the running ones' last moments.
    """
    try:
        return time.clock_gettime_ns((~number << 3) | 2) / 1e9
    except OSError:
        return None


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
