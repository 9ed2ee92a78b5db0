"""What a program's faults and calls cost it, as a share of its processor time."""

from __future__ import annotations

from freestone.doctor.observations import Growth, Observations
from freestone.doctor.touched import again, first


def cpu_s(seen: Observations) -> float:
    """Processor time of the run that nobody watched, in seconds; 0 where there is none."""
    return 0.0 if seen.cost is None else seen.cost.user_s + seen.cost.sys_s


def faults_s(seen: Observations) -> float | None:
    """What its page faults cost, in seconds of processor time; None where that is not known.

    Never more than the time it spent in the kernel (:func:`fault_ns`).
    """
    if seen.cost is None or seen.cost.minor_faults is None or seen.prices is None:
        return None
    return seen.cost.minor_faults * fault_ns(seen) / 1e9


def fault_ns(seen: Observations) -> float:
    """What one of its faults is taken to cost, in nanoseconds: the price here, or its part of the kernel's time.

    A folio makes a fault cheaper than its price for pages alone, so all of them never cost more than the time that the
    program spent in the kernel. 0 where there is no price.
    """
    if seen.cost is None or not seen.cost.minor_faults or seen.prices is None:
        return 0.0
    return min(seen.prices.small.ns, seen.cost.sys_s * 1e9 / seen.cost.minor_faults)


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
    """What faults on memory given back and taken again cost, in seconds (:func:`freestone.doctor.touched.again`)."""
    return again(seen, how) * fault_ns(seen) / 1e9


def first_share(seen: Observations, faults: float | None = None) -> float | None:
    """The share of processor time of faults on memory that was new: all of them, or some."""
    counted = first(seen) if faults is None else faults
    return None if counted is None or seen.prices is None else share(counted * fault_ns(seen) / 1e9, seen)
