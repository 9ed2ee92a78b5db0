"""What a program's faults and calls cost it, as a share of its processor time."""

from __future__ import annotations

from freestone.doctor.observations import Growth, Observations
from freestone.doctor.thresholds import PROCESS_KIB


def cpu_s(seen: Observations) -> float:
    """Processor time of the run that nobody watched, in seconds; 0 where there is none."""
    return 0.0 if seen.cost is None else seen.cost.user_s + seen.cost.sys_s


def faults_s(seen: Observations) -> float | None:
    """What its page faults cost, in seconds of processor time; None where that is not known.

    Never more than the time it spent in the kernel: folios make a fault cheaper than its price for pages alone.
    """
    if seen.cost is None or seen.cost.minor_faults is None or seen.prices is None:
        return None
    return min(seen.cost.sys_s, seen.cost.minor_faults * seen.prices.small.ns / 1e9)


def calls_s(seen: Observations, growth: Growth) -> float | None:
    """What moving the heap's edges costs without the faults that follow."""
    if seen.prices is None:
        return None
    prices = seen.prices
    nanoseconds = (
        growth.map_unmap_pairs * prices.map_unmap_ns
        + growth.brk_down_up * prices.brk_ns
        + (growth.heap_mprotects + growth.heap_shrinks) * prices.protect_ns
    )
    return nanoseconds / 1e9


def share(part_s: float | None, seen: Observations) -> float | None:
    """A part of the processor time, 0 to 1."""
    whole = cpu_s(seen)
    return None if part_s is None or whole <= 0 else min(1.0, part_s / whole)


def refaulted_s(seen: Observations, how: str) -> float:
    """What faults cost beyond one for each page that was ever resident: those on memory given back and taken again.

    Where mappings, the end of the heap and threads' heaps all move, each has its share by how often it moved.
    """
    if seen.cost is None or seen.cost.minor_faults is None or seen.prices is None or seen.calls is None:
        return 0.0
    again = max(0.0, seen.cost.minor_faults - pages(seen))
    growth = seen.calls.growth
    moves = {
        "munmap": growth.map_unmap_pairs,
        "brk": growth.brk_down_up,
        "heaps": growth.heap_shrinks,
    }
    whole = sum(moves.values())
    part = moves[how] / whole if whole else 0.0
    return min(seen.cost.sys_s, part * again * seen.prices.small.ns / 1e9)


def pages(seen: Observations) -> float:
    """How many pages the tree ever had, as far as that is known: the largest process's, and a little for each other."""
    if seen.cost is None or seen.prices is None:
        return 0.0
    others = PROCESS_KIB * max(0, seen.cost.processes - 1)
    own = max(0, (seen.cost.peak_rss_kib or 0) - seen.cost.resident_before_kib)
    return (own + others) / seen.prices.page_kib
