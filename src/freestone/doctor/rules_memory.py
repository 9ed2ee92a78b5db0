"""Symptoms of memory: one pure function each, observations in, a finding or nothing out."""

from __future__ import annotations

import itertools

from freestone.doctor.evidence import live_at, mib
from freestone.doctor.finding import Finding
from freestone.doctor.lasting import lasting
from freestone.doctor.observations import Observations
from freestone.doctor.thresholds import (
    AT_END,
    CACHING_THREADS,
    FREE_BLOCKS,
    FREED,
    FROM_MALLOC,
    HEAPS,
    HUGE,
    LEAK_POINTS,
    LIMIT_USED,
    MOST,
    PRESSED_USED,
    PRESSURE,
    UNEVEN,
    WASTE,
    WASTE_KIB,
)


def retention_after_peak(seen: Observations) -> Finding | None:
    """The end of the heap is free, and stays."""
    state = lasting(seen)
    if state is None or state.waste < WASTE or state.point.top_kib is None:
        return None
    if state.point.top_kib < MOST * state.idle_kib:
        return None
    evidence = (
        *state.words,
        f"{mib(state.point.top_kib)} of that lie free at the end of the heap, where they could be given back",
    )
    return Finding("retention-after-peak", evidence, memory=state.waste)


def pinned_top_fragmentation(seen: Observations) -> Finding | None:
    """Free pages lie below a block that lives."""
    state = lasting(seen)
    if state is None or state.waste < WASTE or seen.heap is None or seen.heap.trimmed_kib is None:
        return None
    if state.point.top_kib is None or state.point.top_kib >= MOST * state.idle_kib:
        return None
    if seen.kept_at_end is not None and seen.kept_at_end.thread_heaps_kib > MOST * seen.kept_at_end.rss_kib:
        return None  # arena-bloat's
    if seen.heap.trimmed_kib < MOST * state.idle_kib:
        return None
    if state.point.free_kib is not None and state.point.free_kib < MOST * state.idle_kib:
        return None  # free at the end, and not then: threads' caches
    evidence = (
        *state.words,
        f"{mib(state.point.top_kib)} lie at the end of the heap; the rest lies below blocks that live",
        f"malloc_trim(0) at the end gave {mib(seen.heap.trimmed_kib)} back: whole pages were free",
    )
    return Finding("pinned-top-fragmentation", evidence, memory=state.waste)


def slab_fragmentation(seen: Observations) -> Finding | None:
    """Free blocks lie between blocks that live, so that no page is free."""
    state = lasting(seen)
    if state is None or state.waste < WASTE or seen.heap is None or seen.heap.trimmed_kib is None:
        return None
    if state.point.free_kib is None or state.point.free_kib < FREE_BLOCKS * state.idle_kib:
        return None
    if seen.heap.trimmed_kib >= MOST * state.idle_kib or arena_bloat(seen) is not None:
        return None  # the blocks lie in heaps of threads that have nothing more to ask for
    evidence = (
        *state.words,
        f"{mib(state.point.free_kib)} are free blocks; malloc_trim(0) gave {mib(seen.heap.trimmed_kib)} back, since "
        "hardly a page is free as a whole",
    )
    return Finding("slab-fragmentation", evidence, memory=state.waste)


def arena_bloat(seen: Observations) -> Finding | None:
    """Each thread has a heap of its own that keeps what it once had."""
    if seen.heap is None or seen.kept_at_peak is None:
        return None
    kept = max((k for k in (seen.kept_at_peak, seen.kept_at_end) if k), key=lambda k: k.thread_heaps_kib)
    state = lasting(seen)
    # What is freed as the program ends lay idle for no time at all.
    live = seen.heap.peak_live_kib if state is None else state.point.live_kib
    idle = kept.thread_heaps_kib - live
    waste = max(0.0, idle / max(1, kept.rss_kib))
    if kept.thread_heaps < HEAPS or idle < WASTE_KIB or waste < WASTE:
        return None
    evidence = (
        f"{kept.thread_heaps} heaps of threads hold {mib(kept.thread_heaps_kib)} of {mib(kept.rss_kib)}",
        f"{mib(live)} are in use",
    )
    return Finding("arena-bloat", evidence, memory=waste)


def thread_cache_bloat(seen: Observations) -> Finding | None:
    """Caches of threads hold blocks that nobody uses; to the C library they are in use."""
    state = lasting(seen)
    if state is None or state.point.free_kib is None or state.point.held_kib is None:
        return None
    cached = state.point.held_kib - state.point.free_kib - state.point.live_kib
    part = cached / max(1, state.rss_kib)
    if cached < WASTE_KIB or part < WASTE or (seen.heap is not None and seen.heap.threads < CACHING_THREADS):
        return None
    evidence = (
        f"{mib(cached)} of {mib(state.rss_kib)} are in use to the C library and not to the program: blocks in caches "
        "of threads, and what rounding adds",
    )
    return Finding("thread-cache-bloat", evidence, memory=part)


def huge_page_bloat(seen: Observations) -> Finding | None:
    """Huge pages are resident as a whole, where little of each is in use."""
    kept, heap = seen.kept_at_end or seen.kept_at_peak, seen.heap
    if kept is None or heap is None or kept.rss_kib <= 0:
        return None
    live = live_at(heap, kept.at_s)
    idle = kept.rss_kib - live
    if kept.huge_kib < HUGE * kept.rss_kib or idle < WASTE_KIB or idle < WASTE * kept.rss_kib:
        return None
    evidence = (f"{mib(kept.huge_kib)} of {mib(kept.rss_kib)} resident are huge pages, and {mib(live)} are in use",)
    return Finding("huge-page-bloat", evidence, memory=min(1.0, idle / kept.rss_kib))


def leak(seen: Observations) -> Finding | None:
    """What is in use grows and grows, at the same pace after as before the middle of the run."""
    heap = seen.heap
    if heap is None or len(heap.points) < LEAK_POINTS or heap.frees < FREED * (heap.mallocs + heap.callocs):
        return None
    points = heap.points
    fifth = len(points) // 5
    marks = [points[min(len(points) - 1, (n + 1) * fifth)].live_kib for n in range(5)]
    steps = [after - before for before, after in itertools.pairwise(marks)]
    grown = marks[-1] - marks[0]
    steady = all(step > 0 for step in steps) and max(steps) <= UNEVEN * max(1, min(steps))
    if not steady or grown < WASTE_KIB or heap.end_live_kib < AT_END * heap.peak_live_kib:
        return None
    rss = seen.cost.peak_rss_kib if seen.cost is not None and seen.cost.peak_rss_kib else heap.peak_live_kib
    evidence = (
        f"what is in use grew from {mib(marks[0])} to {mib(marks[-1])} at one pace, to the end",
        "a program that keeps what it builds looks the same: it is for its owner to say which it is",
    )
    return Finding("leak", evidence, memory=min(1.0, grown / max(1, rss)))


def memory_limit_pressure(seen: Observations) -> Finding | None:
    """Its control group has hardly room for it."""
    limit, peak = seen.platform.memory_limit_kib, seen.cost.peak_rss_kib if seen.cost else None
    if limit is None or peak is None:
        return None
    used = (seen.platform.memory_used_kib or 0) + peak
    waiting = seen.platform.pressure_some or 0.0
    if peak < LIMIT_USED * limit and not (waiting >= PRESSURE and used >= PRESSED_USED * limit):
        return None
    evidence = [f"{mib(peak)} at its peak, under a limit of {mib(limit)}"]
    if waiting >= 0.01:
        evidence.append(f"{waiting:.0%} of the time something in its control group waited for memory")
    return Finding("memory-limit-pressure", tuple(evidence), memory=min(1.0, peak / limit))


def own_allocator(seen: Observations) -> Finding | None:
    """A runtime or a library serves itself: no allocator that is put in changes that."""
    found = [heap for heap in seen.own_heaps if heap.share is None or heap.share < FROM_MALLOC]
    if not found:
        return None
    evidence = []
    for heap in found:
        told = "" if heap.share is None else f"; {heap.share:.0%} of its resident memory comes from malloc"
        evidence.append(f"{heap.what} has a heap of its own{told}" + (f": {heap.remedy}" if heap.remedy else ""))
    shares = [heap.share for heap in found if heap.share is not None]
    return Finding("own-allocator", tuple(evidence), memory=1 - min(shares) if shares else None)
