"""What a program suffers from: every rule, what each needs to have been seen, and what they say of one program.

A finding tells what it rests on and its share of the program's processor time or of its resident memory, as far as
that can be told without trying a cure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from freestone.doctor import evidence
from freestone.doctor.finding import Finding
from freestone.doctor.lasting import lasting
from freestone.doctor.observations import Growth, Observations
from freestone.doctor.rules_memory import (
    arena_bloat,
    huge_page_bloat,
    leak,
    memory_limit_pressure,
    own_allocator,
    pinned_top_fragmentation,
    retention_after_peak,
    slab_fragmentation,
    thread_cache_bloat,
)
from freestone.doctor.rules_time import (
    calloc_clearing,
    first_touch_faults,
    huge_pages_missing,
    lock_contention,
    mapping_churn,
    mprotect_growth,
    quadratic_realloc,
    remote_free_pingpong,
    trim_churn,
)
from freestone.doctor.shares import calls_s, cpu_s, faults_s, share
from freestone.doctor.thresholds import WORTH

Rule = Callable[[Observations], Finding | None]

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

ON_FIRST_FAULTS: Final = ("huge-pages-missing", "first-touch-faults")
"""Those whose price is that of faults on new memory in malloc's hands."""

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
    found = _faults_once(found, seen)
    return found or ([] if unexplained(seen) is not None else [healthy(seen)])


def _faults_once(found: Sequence[Finding], seen: Observations) -> list[Finding]:
    """Where two symptoms rest on the same page faults, the second says so instead of telling them again."""
    said: list[Finding] = []
    holder: str | None = None
    for each in found:
        if each.symptom not in ON_FIRST_FAULTS or each.outside_malloc:
            said.append(each)
        elif holder is None:
            holder = each.symptom
            said.append(each)
        else:
            others = [line for line in each.evidence if line not in evidence.faults(seen)]
            same = f"these are the same faults as those of {holder}: their shares are one, and do not add up"
            said.append(replace(each, evidence=(same, *others), same_faults_as=holder))
    return said


def unexplained(seen: Observations) -> float | None:
    """The share of processor time that page faults cost, of which nobody knows where they come from.

    None where it is too little to be a symptom.
    """
    part = share(faults_s(seen), seen)
    return part if part is not None and part >= WORTH else None


def healthy(seen: Observations) -> Finding:
    """Nothing was found: what the price of all of it is."""
    growth = seen.calls.growth if seen.calls is not None else Growth()
    known = faults_s(seen)
    whole = share((known or 0.0) + (calls_s(seen, growth) or 0.0), seen)
    said = "not known" if known is None or whole is None else f"{whole:.1%} of its processor time"
    told = [f"page faults and calls about memory: {said}"]
    state = lasting(seen)
    if state is not None:
        told += state.words
    return Finding("healthy", tuple(told), time=whole)
