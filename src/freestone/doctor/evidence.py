"""Pieces of evidence: sentences with figures from what was seen, and whether it was a habit."""

from __future__ import annotations

from freestone.doctor import knobs
from freestone.doctor.observations import HeapUse, MemoryCalls, Observations
from freestone.doctor.shares import cpu_s
from freestone.doctor.thresholds import FEW_MOVES, HARDLY, LOOKED_AT, MOVES, OVER_AGAIN, SLEEPS, SLEEPS_BESIDE


def live_at(heap: HeapUse, at_s: float) -> int:
    """KiB in use at the look that is nearest to a moment, in seconds."""
    near = min(heap.points, key=lambda point: abs(point.at_s - at_s), default=None)
    return heap.peak_live_kib if near is None else near.live_kib


def once(seen: Observations) -> list[str]:
    """That hardly a page was touched anew; nothing where that is not known of one process."""
    if seen.cost is None or seen.cost.processes > 1 or not seen.cost.peak_rss_kib:
        return []
    return [f"that is about one for each page of its {mib(seen.cost.peak_rss_kib)}: hardly any was touched anew"]


def faults(seen: Observations) -> list[str]:
    """Page faults, their price here, and the time in the kernel; nothing where they were not counted."""
    if seen.cost is None or seen.cost.minor_faults is None or seen.prices is None:
        return []
    return [
        f"{seen.cost.minor_faults:,} page faults at some {seen.prices.small.ns:,.0f} ns; "
        f"{seen.cost.sys_s:.2g} of {cpu_s(seen):.2g} s of processor time in the kernel"
    ]


def calls_of(seen: Observations, name: str) -> MemoryCalls | None:
    """What was seen of one kind of call; None where there was none, or nobody looked."""
    kinds = seen.calls.by_kind if seen.calls is not None else []
    return next((each for each in kinds if each.name == name), None)


def is_habit(seen: Observations, moves: int, name: str) -> bool:
    """Whether it was moved often; or less often, and several times as much as was ever resident."""
    found = calls_of(seen, name)
    peak_kib = seen.cost.peak_rss_kib if seen.cost is not None else None
    much = found is not None and bool(peak_kib) and found.kib >= OVER_AGAIN * (peak_kib or 0)
    return moves >= MOVES or (moves >= FEW_MOVES and much)


def sleeps_there(seen: Observations, waited: int) -> bool:
    """Whether so many sampled calls that slept say anything, beside what a tracer saw of locks."""
    if seen.calls is None:
        return waited >= SLEEPS
    locks = calls_of(seen, "futex")
    return waited >= SLEEPS_BESIDE and locks is not None and locks.calls >= LOOKED_AT


def sizes(seen: Observations, name: str) -> list[str]:
    """The size that a call most often had, in classes of powers of two."""
    found = calls_of(seen, name)
    if found is None or not found.sizes:
        return []
    size, calls = max(found.sizes.items(), key=lambda each: each[1])
    return [f"most often of up to {mib(size)}: {calls:,} times"]


def callers(seen: Observations, name: str) -> list[str]:
    """The sites with the largest share of a call, as far as stacks were taken."""
    found = calls_of(seen, name)
    if found is None or not found.sites or found.with_stack <= 0:
        return []
    told = [
        f"{site.calls / found.with_stack:.0%} {' < '.join(site.frames[:3])}"
        for site in found.sites[:3]
        if site.calls >= HARDLY * found.with_stack
    ]
    return [f"{name} comes from: {'; '.join(told)}"] if told else []


def frozen(seen: Observations) -> list[str]:
    """Who has set one of the knobs that freeze glibc's thresholds."""
    environment = seen.settings.environment
    tunables = knobs.tunables(environment.get(knobs.TUNABLES, ""))
    said = [
        f"{name} is set" for name, knob in knobs.VARIABLES.items() if knob in knobs.FREEZING and name in environment
    ]
    said += [f"{name} is set" for name in tunables if name.removeprefix("glibc.malloc.") in knobs.FREEZING]
    if seen.heap is not None:
        called = {number for number, _ in seen.heap.mallopts if knobs.PARAMETERS.get(number) in knobs.FREEZING}
        said += sorted(f"the program calls mallopt({knobs.parameter(number)})" for number in called)
    return [f"{', '.join(said)}: glibc's thresholds do not follow the program any more"] if said else []


def mib(kib: float) -> str:
    """KiB as MiB, with a decimal below 100."""
    return f"{kib / 1024:.1f} MiB" if kib < 100 << 10 else f"{kib / 1024:,.0f} MiB"
