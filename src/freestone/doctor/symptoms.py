"""What a program suffers from: one pure function for each symptom, observations in, a finding or nothing out.

A finding tells what it rests on and its share of the program's processor time or of its resident memory, as far as
that can be told without trying a cure. Thresholds are those of the research note's section 5.8, and stand here by name.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from freestone.doctor import knobs
from freestone.doctor.observations import Growth, HeapPoint, HeapUse, MemoryCalls, Observations

WORTH: Final = 0.03
"""From this share of processor time on a symptom is worth a cure."""

WASTE: Final = 0.30
"""From this share of resident memory on waste is worth a cure."""

WASTE_KIB: Final = 8 << 10
"""What is less is not: a process of any kind holds some MiB that nobody asked malloc for."""

MOVES: Final = 20
"""What was moved less often was no habit: mappings, the end of the heap."""

FEW_MOVES: Final = 5
"""Fewer are none however large: those of a few blocks that were several times as much as was ever resident."""

HEAP_MOVES: Final = 200
"""Likewise of threads' heaps, which open in small steps by design."""

HEAP_MOVES_S: Final = 2000
"""So many in a second hold other threads up, whatever they cost themselves."""

ANEW: Final = 1.5
"""More faults than this for each page, and pages were touched anew."""

ANEW_MORE: Final = 1000
"""What the process itself costs beside that, in faults."""

LARGE_KIB: Final = 64 << 10
"""From this much in use on a heap is large enough for huge pages."""

DENSE: Final = 0.6
"""From this share of resident memory in use on it is dense."""

BARE: Final = 0.05
"""Below this share of huge pages it has none to speak of."""

HUGE: Final = 0.5
"""From this share on they are what it consists of."""

LOOKED_AT: Final = 100
"""From fewer calls nothing is concluded."""

SLEPT: Final = 0.01
"""Of calls, and of threads' time: below it nobody waits."""

SLEEPS: Final = 10
"""From fewer of those looked at no time is reckoned: one may have been a neighbour's."""

SLEEPS_BESIDE: Final = 2
"""From so few on it is where a tracer has seen threads sleep on locks, ``LOOKED_AT`` times or more."""

REMOTE: Final = 0.2
"""From this share of frees in other threads on it is how the program works."""

SMALL_STEPS: Final = 0.3
"""Likewise of reallocs by small steps."""

OVER_AGAIN: Final = 4
"""What was copied or cleared so many times as much as was ever in use was so again and again."""

MOST: Final = 0.5
"""Of what is idle: what says where it lies."""

FREE_BLOCKS: Final = 0.3
"""Of what is idle: from here on free blocks are a reason."""

HEAPS: Final = 3
"""With fewer heaps of threads they are not too many."""

CACHING_THREADS: Final = 4
"""With fewer threads their caches are not what holds memory."""

FREED: Final = 0.3
"""Below this share of frees a program only builds up."""

UNEVEN: Final = 3
"""Steps that differ by more are no steady growth."""

AT_END: Final = 0.8
"""What ends below this share of its peak has let go."""

LIMIT_USED: Final = 0.85
"""From this share of the limit on there is hardly room."""

PRESSURE: Final = 0.10
"""From this share of time spent waiting for memory on it is felt."""

PRESSED_USED: Final = 0.7
"""Below this share of the limit somebody else is the reason."""

FROM_MALLOC: Final = 0.5
"""From this share of resident memory on malloc serves the program after all."""


@dataclass(frozen=True)
class Finding:
    """A symptom that was found."""

    symptom: str
    evidence: tuple[str, ...]
    """Sentences with figures."""
    time: float | None = None
    """Share of the tree's processor time, 0 to 1; None where it is not one of time, or not known."""
    memory: float | None = None
    """Share of resident memory, 0 to 1; likewise."""

    def as_json(self) -> dict[str, object]:
        """What ``--json`` says of it."""
        return {"symptom": self.symptom, "evidence": list(self.evidence), "time": self.time, "memory": self.memory}

    @property
    def weight(self) -> float:
        """By which findings are ordered."""
        return max(self.time or 0.0, self.memory or 0.0)


Rule = Callable[[Observations], Finding | None]


# --- what things cost -------------------------------------------------------------------------------------------------


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


# --- time -------------------------------------------------------------------------------------------------------------


def mapping_churn(seen: Observations) -> Finding | None:
    """Large blocks get a mapping of their own each time, and the kernel clears its pages anew."""
    if seen.calls is None or seen.cost is None:
        return None
    growth = seen.calls.growth
    if not _is_habit(seen, growth.map_unmap_pairs, "munmap"):
        return None
    touched = _refaulted_s(seen, "munmap")
    part = share((calls_s(seen, Growth(map_unmap_pairs=growth.map_unmap_pairs)) or 0.0) + touched, seen)
    if part is None or part < WORTH:
        return None
    evidence = [
        f"{growth.map_unmap_pairs:,} mappings were made and taken back",
        *_sizes(seen, "munmap"),
        *_callers(seen, "munmap"),
        *_faults(seen),
        *_frozen(seen),
    ]
    return Finding("mapping-churn", tuple(evidence), time=part)


def trim_churn(seen: Observations) -> Finding | None:
    """The end of the heap is given back and taken again."""
    if seen.calls is None or seen.cost is None:
        return None
    growth = seen.calls.growth
    if not _is_habit(seen, growth.brk_down_up, "brk"):
        return None
    part = share((calls_s(seen, Growth(brk_down_up=growth.brk_down_up)) or 0.0) + _refaulted_s(seen, "brk"), seen)
    if part is None or part < WORTH:
        return None
    evidence = [
        f"the end of the heap was given back and taken again {growth.brk_down_up:,} times",
        *_callers(seen, "brk"),
        *_faults(seen),
        *_frozen(seen),
    ]
    return Finding("trim-churn", tuple(evidence), time=part)


def mprotect_growth(seen: Observations) -> Finding | None:
    """Threads' heaps are opened a few pages at a time, each by a call that stops all threads' faults."""
    if seen.calls is None or seen.cost is None or seen.cost.wall_s <= 0:
        return None
    growth = seen.calls.growth
    moves = growth.heap_mprotects + growth.heap_shrinks
    opened = calls_s(seen, Growth(heap_mprotects=growth.heap_mprotects, heap_shrinks=growth.heap_shrinks)) or 0.0
    part = share(opened + _refaulted_s(seen, "heaps"), seen)
    if part is None or moves < HEAP_MOVES or (part < WORTH and moves / seen.cost.wall_s < HEAP_MOVES_S):
        return None
    evidence = [
        f"heaps of threads were opened by mprotect {growth.heap_mprotects:,} times"
        + (f" and closed again {growth.heap_shrinks:,} times" if growth.heap_shrinks else ""),
        *_callers(seen, "mprotect"),
        "each call takes the lock of the whole address space, so other threads' page faults wait for it",
    ]
    return Finding("mprotect-growth", tuple(evidence), time=part)


def first_touch_faults(seen: Observations) -> Finding | None:
    """Memory is new to the program: each page is touched once, and that is what costs."""
    if seen.cost is None or seen.cost.minor_faults is None or not seen.cost.peak_rss_kib or seen.prices is None:
        return None
    part = share(faults_s(seen), seen)
    if part is None or part < WORTH or seen.cost.minor_faults > ANEW * _pages(seen) + ANEW_MORE:
        return None
    evidence = [*_faults(seen), *_once(seen)]
    return Finding("first-touch-faults", tuple(evidence), time=part)


def huge_pages_missing(seen: Observations) -> Finding | None:
    """A dense heap that is large enough for huge pages, and gets none."""
    if seen.cost is None or seen.prices is None or seen.heap is None or seen.kept_at_peak is None:
        return None
    part = share(faults_s(seen), seen)
    large = seen.heap.peak_live_kib >= LARGE_KIB and seen.heap.peak_live_kib >= DENSE * seen.kept_at_peak.rss_kib
    refused = seen.settings.huge_pages_off or seen.platform.huge_pages in ("never", "madvise")
    bare = seen.kept_at_peak.huge_kib < BARE * seen.kept_at_peak.rss_kib
    if part is None or part < WORTH or not large or not bare or not refused:
        return None
    if seen.platform.huge_pages == "never" and not seen.settings.huge_pages_off:
        return None  # nobody but root can change that
    why = "its prctl forbids them" if seen.settings.huge_pages_off else "they are given on request (madvise) alone"
    evidence = [
        f"{_mib(seen.heap.peak_live_kib)} in use, {_mib(seen.kept_at_peak.huge_kib)} of it in huge pages: {why}",
        *_faults(seen),
    ]
    return Finding("huge-pages-missing", tuple(evidence), time=part)


def lock_contention(seen: Observations) -> Finding | None:
    """Threads sleep inside malloc and free, waiting for each other."""
    heap = seen.heap
    if heap is None or heap.threads < 2 or heap.sampled_calls < LOOKED_AT or seen.cost is None:
        return None
    if not _sleeps_there(seen, heap.waited):
        return None
    calls = heap.mallocs + heap.callocs + heap.frees + heap.realloc.calls
    slept_s = heap.waited_s * calls / heap.sampled_calls
    part = min(1.0, slept_s / (heap.wall_s * heap.threads)) if heap.wall_s > 0 else 0.0
    if part < WORTH and heap.waited < SLEPT * heap.sampled_calls:
        return None
    if part < SLEPT:
        return None
    evidence = (
        f"of {heap.sampled_calls:,} calls that were looked at, {heap.waited:,} put their thread to sleep",
        f"some {slept_s:.2g} s of {heap.threads} threads' {heap.wall_s:.2g} s each",
    )
    return Finding("lock-contention", evidence, time=part)


REMOTE_NS: Final = 60
"""What a block costs more that is freed by another thread: a cache line that moves, and a lock."""


def remote_free_pingpong(seen: Observations) -> Finding | None:
    """Blocks are freed by other threads than those that asked for them."""
    heap = seen.heap
    if heap is None or heap.threads < 2 or heap.sampled_frees < LOOKED_AT:
        return None
    remote = heap.remote_frees / heap.sampled_frees
    part = share(remote * heap.frees * REMOTE_NS / 1e9, seen)
    if remote < REMOTE or part is None or part < WORTH:
        return None
    evidence = (
        f"{remote:.0%} of blocks were freed in another thread than asked for them, {heap.frees:,} frees in all",
    )
    return Finding("remote-free-pingpong", evidence, time=part)


def quadratic_realloc(seen: Observations) -> Finding | None:
    """Blocks grow in small steps, and are copied at each."""
    heap = seen.heap
    if heap is None or heap.realloc.calls < LOOKED_AT or seen.prices is None:
        return None
    grown = heap.realloc
    part = share(grown.copied_kib * seen.prices.copy_kib_ns / 1e9, seen)
    steps = grown.small_steps / grown.calls
    if part is None or part < WORTH or steps < SMALL_STEPS or grown.copied_kib < OVER_AGAIN * heap.peak_live_kib:
        return None
    evidence = (
        f"{grown.calls:,} reallocs, {steps:.0%} of them by less than an eighth; {grown.moved:,} moved their block",
        f"{_mib(grown.copied_kib)} were copied for {_mib(heap.peak_live_kib)} in use at most",
    )
    return Finding("quadratic-realloc", evidence, time=part)


def calloc_clearing(seen: Observations) -> Finding | None:
    """Memory is cleared that was used before."""
    heap = seen.heap
    if heap is None or heap.callocs == 0 or seen.prices is None:
        return None
    part = share(heap.calloc_kib * seen.prices.clear_kib_ns / 1e9, seen)
    if part is None or part < WORTH or heap.calloc_kib < OVER_AGAIN * heap.peak_live_kib:
        return None
    evidence = (f"calloc cleared {_mib(heap.calloc_kib)} in {heap.callocs:,} calls",)
    return Finding("calloc-clearing", evidence, time=part)


# --- memory -----------------------------------------------------------------------------------------------------------


def retention_after_peak(seen: Observations) -> Finding | None:
    """The end of the heap is free, and stays."""
    state = _lasting(seen)
    if state is None or state.waste < WASTE or state.point.top_kib is None:
        return None
    if state.point.top_kib < MOST * state.idle_kib:
        return None
    evidence = (
        *state.words,
        f"{_mib(state.point.top_kib)} of that lie free at the end of the heap, where they could be given back",
    )
    return Finding("retention-after-peak", evidence, memory=state.waste)


def pinned_top_fragmentation(seen: Observations) -> Finding | None:
    """Free pages lie below a block that lives."""
    state = _lasting(seen)
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
        f"{_mib(state.point.top_kib)} lie at the end of the heap; the rest lies below blocks that live",
        f"malloc_trim(0) at the end gave {_mib(seen.heap.trimmed_kib)} back: whole pages were free",
    )
    return Finding("pinned-top-fragmentation", evidence, memory=state.waste)


def slab_fragmentation(seen: Observations) -> Finding | None:
    """Free blocks lie between blocks that live, so that no page is free."""
    state = _lasting(seen)
    if state is None or state.waste < WASTE or seen.heap is None or seen.heap.trimmed_kib is None:
        return None
    if state.point.free_kib is None or state.point.free_kib < FREE_BLOCKS * state.idle_kib:
        return None
    if seen.heap.trimmed_kib >= MOST * state.idle_kib:
        return None
    evidence = (
        *state.words,
        f"{_mib(state.point.free_kib)} are free blocks; malloc_trim(0) gave {_mib(seen.heap.trimmed_kib)} back, since "
        "hardly a page is free as a whole",
    )
    return Finding("slab-fragmentation", evidence, memory=state.waste)


def arena_bloat(seen: Observations) -> Finding | None:
    """Each thread has a heap of its own that keeps what it once had."""
    if seen.heap is None or seen.kept_at_peak is None:
        return None
    kept = max((k for k in (seen.kept_at_peak, seen.kept_at_end) if k), key=lambda k: k.thread_heaps_kib)
    points = seen.heap.points
    live = min((p.live_kib for p in points if p.at_s >= kept.at_s), default=seen.heap.peak_live_kib)
    idle = kept.thread_heaps_kib - live
    waste = max(0.0, idle / max(1, kept.rss_kib))
    if kept.thread_heaps < HEAPS or idle < WASTE_KIB or waste < WASTE:
        return None
    evidence = (
        f"{kept.thread_heaps} heaps of threads hold {_mib(kept.thread_heaps_kib)} of {_mib(kept.rss_kib)}",
        f"{_mib(live)} are in use",
    )
    return Finding("arena-bloat", evidence, memory=waste)


def thread_cache_bloat(seen: Observations) -> Finding | None:
    """Caches of threads hold blocks that nobody uses; to the C library they are in use."""
    state = _lasting(seen)
    if state is None or state.point.free_kib is None or state.point.held_kib is None:
        return None
    cached = state.point.held_kib - state.point.free_kib - state.point.live_kib
    part = cached / max(1, state.rss_kib)
    if cached < WASTE_KIB or part < WASTE or (seen.heap is not None and seen.heap.threads < CACHING_THREADS):
        return None
    evidence = (
        f"{_mib(cached)} of {_mib(state.rss_kib)} are in use to the C library and not to the program: blocks in caches "
        "of threads, and what rounding adds",
    )
    return Finding("thread-cache-bloat", evidence, memory=part)


def huge_page_bloat(seen: Observations) -> Finding | None:
    """Huge pages are resident as a whole, where little of each is in use."""
    kept, heap = seen.kept_at_end or seen.kept_at_peak, seen.heap
    if kept is None or heap is None or kept.rss_kib <= 0:
        return None
    live = _live_at(heap, kept.at_s)
    idle = kept.rss_kib - live
    if kept.huge_kib < HUGE * kept.rss_kib or idle < WASTE_KIB or idle < WASTE * kept.rss_kib:
        return None
    evidence = (f"{_mib(kept.huge_kib)} of {_mib(kept.rss_kib)} resident are huge pages, and {_mib(live)} are in use",)
    return Finding("huge-page-bloat", evidence, memory=min(1.0, idle / kept.rss_kib))


LEAK_POINTS: Final = 8
"""From fewer looks at the heap no growth is read."""


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
        f"what is in use grew from {_mib(marks[0])} to {_mib(marks[-1])} at one pace, to the end",
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
    evidence = [f"{_mib(peak)} at its peak, under a limit of {_mib(limit)}"]
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


RULES: Final[tuple[Rule, ...]] = (
    mapping_churn,
    trim_churn,
    mprotect_growth,
    retention_after_peak,
    pinned_top_fragmentation,
    slab_fragmentation,
    arena_bloat,
    thread_cache_bloat,
    huge_page_bloat,
    huge_pages_missing,
    first_touch_faults,
    lock_contention,
    remote_free_pingpong,
    quadratic_realloc,
    calloc_clearing,
    leak,
    memory_limit_pressure,
    own_allocator,
)


NEEDS: Final[dict[str, tuple[str, ...]]] = {
    "mapping-churn": ("cost", "prices", "calls"),
    "trim-churn": ("cost", "prices", "calls"),
    "mprotect-growth": ("cost", "prices", "calls"),
    "retention-after-peak": ("heap",),
    "pinned-top-fragmentation": ("heap", "trimmed"),
    "slab-fragmentation": ("heap", "trimmed"),
    "arena-bloat": ("heap", "kept_at_peak"),
    "thread-cache-bloat": ("heap",),
    "huge-page-bloat": ("heap", "kept_at_peak"),
    "huge-pages-missing": ("cost", "prices", "heap", "kept_at_peak"),
    "first-touch-faults": ("cost", "prices"),
    "lock-contention": ("cost", "heap"),
    "remote-free-pingpong": ("cost", "heap"),
    "quadratic-realloc": ("cost", "prices", "heap"),
    "calloc-clearing": ("cost", "prices", "heap"),
    "leak": ("heap",),
    "memory-limit-pressure": ("cost",),
    "own-allocator": ("own_heaps",),
}
"""The parts without which nothing is known of a symptom."""


def unjudged(seen: Observations) -> list[str]:
    """Symptoms of which nothing is known, since a part was not seen."""
    missing = {part for part in ("cost", "prices", "calls", "heap", "kept_at_peak") if getattr(seen, part) is None}
    if seen.heap is None or seen.heap.trimmed_kib is None:
        missing.add("trimmed")
    if seen.running is not None:
        missing.add("own_heaps")
    if cpu_s(seen) <= 0:
        missing.add("cost")
    return [symptom for symptom, parts in NEEDS.items() if missing.intersection(parts)]


def name(seen: Observations) -> list[Finding]:
    """Everything that is found, the heaviest first; ``healthy`` alone where there is nothing.

    Nothing at all where memory costs too much for a program that is well, and how was not seen (:func:`unexplained`).
    """
    found = sorted((each for rule in RULES if (each := rule(seen)) is not None), key=lambda each: -each.weight)
    return found or ([] if unexplained(seen) is not None else [healthy(seen)])


def unexplained(seen: Observations) -> float | None:
    """The share of processor time that page faults cost where its calls were not seen, from which they come.

    None where it is too little to be a symptom, or its calls were seen.
    """
    part = share(faults_s(seen), seen)
    return part if part is not None and part >= WORTH and seen.calls is None else None


def healthy(seen: Observations) -> Finding:
    """Nothing was found: what the price of all of it is."""
    growth = seen.calls.growth if seen.calls is not None else Growth()
    known = faults_s(seen)
    whole = share((known or 0.0) + (calls_s(seen, growth) or 0.0), seen)
    said = "not known" if known is None or whole is None else f"{whole:.1%} of its processor time"
    evidence = [f"page faults and calls about memory: {said}"]
    state = _lasting(seen)
    if state is not None:
        evidence += state.words
    return Finding("healthy", tuple(evidence), time=whole)


# --- pieces of evidence -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _State:
    """The heap and the resident set at one moment."""

    point: HeapPoint
    rss_kib: int

    @property
    def idle_kib(self) -> int:
        """Resident and not in use."""
        return max(0, self.rss_kib - self.point.live_kib)

    @property
    def waste(self) -> float:
        """Its share; 0 where it is little."""
        return self.idle_kib / self.rss_kib if self.rss_kib > 0 and self.idle_kib >= WASTE_KIB else 0.0

    @property
    def words(self) -> tuple[str, ...]:
        return (f"{_mib(self.rss_kib)} resident, {_mib(self.point.live_kib)} in use",)


LASTS: Final = 0.25
"""Waste counts that lasts for this share of the run: what is gone sooner was about to be used."""


def _lasting(seen: Observations) -> _State | None:
    """The heap as it was when most lay idle that lay so for long; None where nobody looked."""
    if seen.heap is None:
        return None
    points = [point for point in seen.heap.points if point.rss_kib is not None]
    if not points:
        return None
    ends = [*(point.at_s for point in points[1:]), max(seen.heap.wall_s, points[-1].at_s)]
    states = [
        (_State(point, point.rss_kib or 0), max(0.0, end - point.at_s)) for point, end in zip(points, ends, strict=True)
    ]
    lasted, needed = 0.0, LASTS * sum(duration for _, duration in states)
    for state, duration in sorted(states, key=lambda each: -each[0].idle_kib):
        lasted += duration
        if lasted >= needed:
            return state
    return states[-1][0]


def _live_at(heap: HeapUse, at_s: float) -> int:
    near = min(heap.points, key=lambda point: abs(point.at_s - at_s), default=None)
    return heap.peak_live_kib if near is None else near.live_kib


def _refaulted_s(seen: Observations, how: str) -> float:
    """What faults cost beyond one for each page that was ever resident: those on memory given back and taken again.

    Where mappings, the end of the heap and threads' heaps all move, each has its share by how often it moved.
    """
    if seen.cost is None or seen.cost.minor_faults is None or seen.prices is None or seen.calls is None:
        return 0.0
    again = max(0.0, seen.cost.minor_faults - _pages(seen))
    growth = seen.calls.growth
    moves = {
        "munmap": growth.map_unmap_pairs,
        "brk": growth.brk_down_up,
        "heaps": growth.heap_shrinks,
    }
    whole = sum(moves.values())
    part = moves[how] / whole if whole else 0.0
    return min(seen.cost.sys_s, part * again * seen.prices.small.ns / 1e9)


PROCESS_KIB: Final = 1500
"""What a process that does nothing has resident of its own: what each one beside the largest is taken for."""


def _pages(seen: Observations) -> float:
    """How many pages the tree ever had, as far as that is known: the largest process's, and a little for each other."""
    if seen.cost is None or seen.prices is None:
        return 0.0
    others = PROCESS_KIB * max(0, seen.cost.processes - 1)
    own = max(0, (seen.cost.peak_rss_kib or 0) - seen.cost.resident_before_kib)
    return (own + others) / seen.prices.page_kib


def _once(seen: Observations) -> list[str]:
    if seen.cost is None or seen.cost.processes > 1 or not seen.cost.peak_rss_kib:
        return []
    return [f"that is about one for each page of its {_mib(seen.cost.peak_rss_kib)}: hardly any was touched anew"]


def _faults(seen: Observations) -> list[str]:
    if seen.cost is None or seen.cost.minor_faults is None or seen.prices is None:
        return []
    return [
        f"{seen.cost.minor_faults:,} page faults at some {seen.prices.small.ns:,.0f} ns; "
        f"{seen.cost.sys_s:.2g} of {cpu_s(seen):.2g} s of processor time in the kernel"
    ]


def _calls_of(seen: Observations, name: str) -> MemoryCalls | None:
    """What was seen of one kind of call; None where there was none, or nobody looked."""
    kinds = seen.calls.by_kind if seen.calls is not None else []
    return next((each for each in kinds if each.name == name), None)


def _is_habit(seen: Observations, moves: int, name: str) -> bool:
    """Whether it was moved often; or less often, and several times as much as was ever resident."""
    found = _calls_of(seen, name)
    peak_kib = seen.cost.peak_rss_kib if seen.cost is not None else None
    much = found is not None and bool(peak_kib) and found.kib >= OVER_AGAIN * (peak_kib or 0)
    return moves >= MOVES or (moves >= FEW_MOVES and much)


def _sleeps_there(seen: Observations, waited: int) -> bool:
    """Whether so many sampled calls that slept say anything, beside what a tracer saw of locks."""
    if seen.calls is None:
        return waited >= SLEEPS
    locks = _calls_of(seen, "futex")
    return waited >= SLEEPS_BESIDE and locks is not None and locks.calls >= LOOKED_AT


def _sizes(seen: Observations, name: str) -> list[str]:
    found = _calls_of(seen, name)
    if found is None or not found.sizes:
        return []
    size, calls = max(found.sizes.items(), key=lambda each: each[1])
    return [f"most often of up to {_mib(size)}: {calls:,} times"]


def _callers(seen: Observations, name: str) -> list[str]:
    """The sites with the largest share of a call, as far as stacks were taken."""
    found = _calls_of(seen, name)
    if found is None or not found.sites or found.with_stack <= 0:
        return []
    told = [
        f"{site.calls / found.with_stack:.0%} {' < '.join(site.frames[:3])}"
        for site in found.sites[:3]
        if site.calls >= HARDLY * found.with_stack
    ]
    return [f"{name} comes from: {'; '.join(told)}"] if told else []


HARDLY: Final = 0.01
"""A site with a smaller share of a call is not told."""


def _frozen(seen: Observations) -> list[str]:
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


def _mib(kib: float) -> str:
    return f"{kib / 1024:.1f} MiB" if kib < 100 << 10 else f"{kib / 1024:,.0f} MiB"
