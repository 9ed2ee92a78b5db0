"""Pieces of evidence: sentences with figures from what was seen, and whether it was a habit."""

from __future__ import annotations

from freestone.doctor import knobs, touched
from freestone.doctor.observations import HeapUse, MemoryCalls, Observations
from freestone.doctor.shares import cpu_s, fault_ns
from freestone.doctor.thresholds import (
    ANEW,
    FEW_MOVES,
    HARDLY,
    LOOKED_AT,
    MOVES,
    ONE_EACH,
    OVER_AGAIN,
    SLEEPS,
    SLEEPS_BESIDE,
)

_NEARLY = 0.9
"""From this share on it is all, as far as a count of pages can tell."""


def live_at(heap: HeapUse, at_s: float) -> int:
    """KiB in use at the look that is nearest to a moment, in seconds."""
    near = min(heap.points, key=lambda point: abs(point.at_s - at_s), default=None)
    return heap.peak_live_kib if near is None else near.live_kib


def once(seen: Observations, *, outside_malloc: bool) -> list[str]:
    """How many pages stand beside the faults on new memory; nothing where that is not known of one process.

    Args:
        outside_malloc: whether all that was resident counts; else what is no file's, where that was seen.
    """
    faults = touched.first(seen)
    if faults is None or seen.cost is None or seen.prices is None or seen.cost.processes > 1:
        return []
    own_kib = None if outside_malloc else touched.anonymous_kib(seen)
    kib = touched.pages(seen) * seen.prices.page_kib if own_kib is None else own_kib
    if kib <= 0 or faults <= 0:
        return []
    memory = f"its {mib(kib)}" + ("" if own_kib is None else " that are no file's")
    each = faults * seen.prices.page_kib / kib
    all_told = faults >= _NEARLY * (seen.cost.minor_faults or 0)
    counted = "that is" if all_told else f"some {faults:,.0f} of them were on memory that was new:"
    if each < ONE_EACH:
        why = "several came at once (folios, huge pages, or pages of a file that lay in memory)"
        return [f"{counted} one for every {1 / each:,.1f} pages of {memory}: {why}"]
    if each <= ANEW:
        return [
            f"{counted} about one for each page of {memory}" + (": hardly any was touched anew" if all_told else "")
        ]
    return [f"{counted} {each:.1f} for each page of {memory}, those of its start among them"]


def whose(seen: Observations, *, outside_malloc: bool) -> list[str]:
    """How much of what is new can be malloc's at most; nothing where that is as good as all."""
    faults, mallocs, most_kib = touched.first(seen), touched.mallocs_first(seen), touched.mallocs_kib(seen)
    if not faults or mallocs is None:
        return []
    if seen.heap is None and not outside_malloc:
        return ["how much of that memory came from malloc was not seen"]
    if outside_malloc:
        return [
            f"at most {mallocs / faults:.0%} of these faults were in malloc's memory ({mib(most_kib or 0)}); the rest "
            "is what it maps by itself, files and its own code: no allocator and no setting of one changes that"
        ]
    if mallocs >= _NEARLY * faults:
        return []
    return [
        f"at most {mallocs:,.0f} of them were in malloc's memory ({mib(most_kib or 0)}), and those alone are counted"
    ]


def counted(seen: Observations) -> list[str]:
    """How many of the faults are counted where only those on new memory of malloc's are; nothing where it is all."""
    mallocs, number = touched.mallocs_first(seen), 0 if seen.cost is None else seen.cost.minor_faults or 0
    if mallocs is None or mallocs >= _NEARLY * number:
        return []
    return [f"some {mallocs:,.0f} of them, one for each page that was new and can be malloc's, are counted"]


def faults(seen: Observations) -> list[str]:
    """Page faults, their price here, and the time in the kernel; nothing where they were not counted.

    Where their price comes to more than the kernel's time, which is what is counted then, that is said.
    """
    if seen.cost is None or seen.cost.minor_faults is None or seen.prices is None:
        return []
    number, ns = seen.cost.minor_faults, seen.prices.small.ns
    kernel = f"{seen.cost.sys_s:.2g} of {cpu_s(seen):.2g} s of processor time in the kernel"
    if number * ns / 1e9 <= seen.cost.sys_s:
        return [f"{number:,} page faults at some {ns:,.0f} ns; {kernel}"]
    return [
        f"{number:,} page faults; {kernel}. At the {ns:,.0f} ns of a fault here they would be "
        f"{number * ns / 1e9:.2g} s, which is more: counted at {fault_ns(seen):,.0f} ns each, all of the kernel's time"
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
