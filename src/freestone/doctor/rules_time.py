"""Symptoms of time: one pure function each, observations in, a finding or nothing out."""

from __future__ import annotations

from freestone.doctor.evidence import (
    callers,
    calls_of,
    counted,
    faults,
    frozen,
    is_habit,
    mib,
    once,
    sizes,
    sleeps_there,
    whose,
)
from freestone.doctor.finding import Finding
from freestone.doctor.observations import Growth, Observations
from freestone.doctor.shares import calls_s, first_share, refaulted_s, share
from freestone.doctor.thresholds import (
    ANEW,
    ANEW_MORE,
    BARE,
    DENSE,
    FROM_MALLOC,
    HEAP_MOVES,
    HEAP_MOVES_S,
    LARGE_KIB,
    LEAST_MAPPED,
    LOOKED_AT,
    M_MMAP_THRESHOLD,
    OVER_AGAIN,
    REMOTE,
    REMOTE_NS,
    SLEEPS,
    SLEPT,
    SMALL_STEPS,
    WORTH,
)
from freestone.doctor.touched import anonymous_kib, first, mallocs_first, pages


def mapping_churn(seen: Observations) -> Finding | None:
    """Large blocks get a mapping of their own each time, and the kernel clears its pages anew."""
    if seen.calls is None or seen.cost is None:
        return None
    growth = seen.calls.growth
    if not is_habit(seen, growth.map_unmap_pairs, "munmap"):
        return None
    touched = refaulted_s(seen, "munmap")
    part = share((calls_s(seen, Growth(map_unmap_pairs=growth.map_unmap_pairs)) or 0.0) + touched, seen)
    if part is None or part < WORTH:
        return None
    evidence = [
        f"{growth.map_unmap_pairs:,} mappings were made and taken back",
        *sizes(seen, "munmap"),
        *callers(seen, "munmap"),
        *faults(seen),
        *frozen(seen),
    ]
    outside = _mapped_outside_malloc(seen)
    if outside is not None:
        evidence.append(outside)
    return Finding("mapping-churn", tuple(evidence), time=part, outside_malloc=outside is not None)


def _mapped_outside_malloc(seen: Observations) -> str | None:
    """Why most of these mappings cannot be malloc's blocks; None where they may be."""
    heap = seen.heap
    if heap is None or seen.calls is None or seen.cost is None or seen.cost.processes > 1:
        return None
    asked = heap.mallocs + heap.callocs + heap.realloc.calls
    own = any("MMAP_THRESHOLD" in text.upper() for each in seen.settings.environment.items() for text in each)
    own = own or any(parameter == M_MMAP_THRESHOLD for parameter, _ in heap.mallopts)
    if not own:
        # Below this nothing has a mapping of its own where nobody has set the threshold.
        asked = min(asked, sum(each.calls for each in heap.sizes if each.to_bytes > LEAST_MAPPED))
    pairs = seen.calls.growth.map_unmap_pairs
    if asked < FROM_MALLOC * pairs:
        return f"malloc was asked for {asked:,} blocks that are large enough: the program maps most of it itself"
    alike = None if own else _of_sizes_asked_for(seen)
    if alike is not None and alike < FROM_MALLOC:
        return f"malloc was asked for blocks of these sizes for {alike:.0%} of them at most: the program maps the rest"
    return None


def _of_sizes_asked_for(seen: Observations) -> float | None:
    """The share of mappings taken back that can have held one of malloc's blocks each, by their sizes; None where
    sizes were not seen. A mapping is a little larger than its block: of the same power of two, or of the next."""
    found = calls_of(seen, "munmap")
    if found is None or seen.heap is None or not found.sizes:
        return None
    asked = {each.to_bytes: each.calls for each in seen.heap.sizes}
    fitting = 0
    for kib, calls in found.sizes.items():
        fitting += min(calls, asked.get(kib << 10, 0) + asked.get(kib << 9, 0))
    return fitting / max(1, sum(found.sizes.values()))


def trim_churn(seen: Observations) -> Finding | None:
    """The end of the heap is given back and taken again."""
    if seen.calls is None or seen.cost is None:
        return None
    growth = seen.calls.growth
    if not is_habit(seen, growth.brk_down_up, "brk"):
        return None
    part = share((calls_s(seen, Growth(brk_down_up=growth.brk_down_up)) or 0.0) + refaulted_s(seen, "brk"), seen)
    if part is None or part < WORTH:
        return None
    evidence = [
        f"the end of the heap was given back and taken again {growth.brk_down_up:,} times",
        *callers(seen, "brk"),
        *faults(seen),
        *frozen(seen),
    ]
    return Finding("trim-churn", tuple(evidence), time=part)


def mprotect_growth(seen: Observations) -> Finding | None:
    """Threads' heaps are opened a few pages at a time, each by a call that stops all threads' faults."""
    if seen.calls is None or seen.cost is None or seen.cost.wall_s <= 0:
        return None
    growth = seen.calls.growth
    moves = growth.heap_mprotects + growth.heap_shrinks
    opened = calls_s(seen, Growth(heap_mprotects=growth.heap_mprotects, heap_shrinks=growth.heap_shrinks)) or 0.0
    part = share(opened + refaulted_s(seen, "heaps"), seen)
    if part is None or moves < HEAP_MOVES or (part < WORTH and moves / seen.cost.wall_s < HEAP_MOVES_S):
        return None
    evidence = [
        f"heaps of threads were opened by mprotect {growth.heap_mprotects:,} times"
        + (f" and closed again {growth.heap_shrinks:,} times" if growth.heap_shrinks else ""),
        *callers(seen, "mprotect"),
        "each call takes the lock of the whole address space, so other threads' page faults wait for it",
    ]
    return Finding("mprotect-growth", tuple(evidence), time=part)


def first_touch_faults(seen: Observations) -> Finding | None:
    """Memory is new to the program: each page is touched once, and that is what costs."""
    if seen.cost is None or seen.cost.minor_faults is None or not seen.cost.peak_rss_kib or seen.prices is None:
        return None
    whole, mallocs = first(seen) or 0.0, mallocs_first(seen) or 0.0
    outside = mallocs < FROM_MALLOC * whole
    part = first_share(seen, whole - mallocs if outside else mallocs)
    if part is None or part < WORTH or seen.cost.minor_faults > ANEW * pages(seen) + ANEW_MORE:
        return None
    evidence = [*faults(seen), *once(seen, outside_malloc=outside), *whose(seen, outside_malloc=outside)]
    return Finding("first-touch-faults", tuple(evidence), time=part, outside_malloc=outside)


def huge_pages_missing(seen: Observations) -> Finding | None:
    """A dense heap that is large enough for huge pages, and gets none."""
    if seen.cost is None or seen.prices is None or seen.heap is None or seen.kept_at_peak is None:
        return None
    part = first_share(seen, mallocs_first(seen))
    own_kib = anonymous_kib(seen) or seen.cost.peak_rss_kib or seen.kept_at_peak.rss_kib
    in_use_kib = min(seen.heap.peak_live_kib, own_kib)
    large = in_use_kib >= LARGE_KIB and in_use_kib >= DENSE * own_kib
    refused = seen.settings.huge_pages_off or seen.platform.huge_pages in ("never", "madvise")
    bare = seen.kept_at_peak.huge_kib < BARE * seen.kept_at_peak.anonymous_kib
    if part is None or part < WORTH or not large or not bare or not refused:
        return None
    if seen.platform.huge_pages == "never" and not seen.settings.huge_pages_off:
        return None  # nobody but root can change that
    why = "its prctl forbids them" if seen.settings.huge_pages_off else "they are given on request (madvise) alone"
    evidence = [
        f"{mib(in_use_kib)} in use, {mib(seen.kept_at_peak.huge_kib)} of it in huge pages: {why}",
        *faults(seen),
        *counted(seen),
    ]
    return Finding("huge-pages-missing", tuple(evidence), time=part)


def lock_contention(seen: Observations) -> Finding | None:
    """Threads sleep inside malloc and free, waiting for each other."""
    heap = seen.heap
    if heap is None or heap.threads < 2 or heap.sampled_calls < LOOKED_AT or seen.cost is None:
        return None
    if not sleeps_there(seen, heap.waited):
        return None
    calls = heap.mallocs + heap.callocs + heap.frees + heap.realloc.calls
    # Of all calls, as those that were looked at; but nobody sleeps more often than the kernel has counted, unwatched.
    # On a busy machine threads hardly meet in one run and ten times as often in the next: the most of several bounds.
    times = calls / heap.sampled_calls
    switches = (seen.cost.voluntary_switches, seen.cost.most_voluntary_switches)
    if any(each is not None for each in switches):
        times = min(times, max(each for each in switches if each is not None) / max(1, heap.waited))
    slept_s = min(heap.waited_s * times, heap.wall_s * heap.threads)
    part = slept_s / (heap.wall_s * heap.threads) if heap.wall_s > 0 else 0.0
    if part < WORTH and heap.waited < SLEPT * heap.sampled_calls:
        return None
    if part < SLEPT:
        return None
    looked = f"of {heap.sampled_calls:,} calls that were looked at, {heap.waited:,} put their thread to sleep"
    if heap.waited < SLEEPS:
        return Finding("lock-contention", (looked, "these are too few to reckon their time from"))
    reckoned = f"reckoned from these: some {slept_s:.1f} s of {heap.threads} threads' {heap.wall_s:.1f} s each"
    return Finding("lock-contention", (looked, reckoned), time=part, time_of="its threads' time")


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
        f"{mib(grown.copied_kib)} were copied for {mib(heap.peak_live_kib)} in use at most",
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
    evidence = (f"calloc cleared {mib(heap.calloc_kib)} at most, in {heap.callocs:,} calls",)
    return Finding("calloc-clearing", evidence, time=part)
