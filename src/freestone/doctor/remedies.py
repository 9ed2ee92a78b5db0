"""What can help against a symptom: configurations to try, and advice where no setting cures. Pure.

A knob of glibc's never stands alone where it freezes another (research note, section 5.1): setting one of the four of
``mmap_threshold``, ``trim_threshold``, ``top_pad``, ``mmap_max`` stops both thresholds from following the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from freestone.doctor.observations import Observations
from freestone.doctor.symptoms import Finding

KEEP_LARGE: Final = {"MALLOC_MMAP_THRESHOLD_": "33554432", "MALLOC_TRIM_THRESHOLD_": "1073741824"}
"""32 MiB is the most that every glibc takes for the first."""
NEVER_MAP: Final = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "18446744073709551615"}
GIVE_BACK: Final = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_TOP_PAD_": "0"}
FRESH_LARGE: Final = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
GROW_WIDE: Final = {
    "MALLOC_TOP_PAD_": "67108864",
    "MALLOC_MMAP_THRESHOLD_": "33554432",
    "MALLOC_TRIM_THRESHOLD_": "1073741824",
}


@dataclass(frozen=True)
class Remedy:
    """One thing to try: an allocator with settings; ``why`` in a few words."""

    allocator: str
    settings: tuple[tuple[str, str], ...]
    why: str


def remedy(allocator: str, why: str, settings: Mapping[str, str] | None = None) -> Remedy:
    """A remedy with its settings in order."""
    return Remedy(allocator, tuple((settings or {}).items()), why)


_OTHERS: Final = (
    remedy("freestone", "keeps what is used again soon and gives the rest back by itself"),
    remedy("mimalloc", "another allocator"),
    remedy("jemalloc", "another allocator"),
    remedy("tcmalloc", "another allocator"),
)

_CHURN: Final = (
    remedy("glibc", "large blocks stay in the heap, and the heap keeps its end", KEEP_LARGE),
    remedy("glibc", "no block has a mapping of its own, and nothing is given back", NEVER_MAP),
    *_OTHERS,
)

_LEAN: Final = (
    remedy("freestone", "gives the rest back by itself"),
    remedy("glibc", "large blocks go back at once, and the end of the heap", GIVE_BACK),
    remedy("freestone", "gives back at once", {"FREESTONE_OPTIONS": "retain_mib=0,retain_percent=0"}),
    remedy(
        "jemalloc",
        "a thread of its own gives back after a second",
        {"MALLOC_CONF": "background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0"},
    ),
    remedy("mimalloc", "gives back at once", {"MIMALLOC_PURGE_DELAY": "0"}),
    remedy("tcmalloc", "another allocator"),
)

CANDIDATES: Final[Mapping[str, tuple[Remedy, ...]]] = {
    "mapping-churn": _CHURN,
    "trim-churn": _CHURN,
    "mprotect-growth": (
        remedy("glibc", "all threads share the main heap", {"MALLOC_ARENA_MAX": "1"}),
        remedy("glibc", "heaps grow by 64 MiB at a time", GROW_WIDE),
        *_OTHERS,
    ),
    "retention-after-peak": _LEAN,
    "pinned-top-fragmentation": _LEAN,
    "slab-fragmentation": _LEAN,
    "arena-bloat": (
        remedy("glibc", "at most two heaps", {"MALLOC_ARENA_MAX": "2"}),
        remedy("glibc", "one heap", {"MALLOC_ARENA_MAX": "1"}),
        remedy(
            "jemalloc", "at most two heaps", {"MALLOC_CONF": "narenas:2,background_thread:true,dirty_decay_ms:1000"}
        ),
        *(each for each in _LEAN if each.allocator != "glibc"),
    ),
    "thread-cache-bloat": (
        remedy("glibc", "threads have no caches", {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}),
        *(each for each in _LEAN if each.allocator != "glibc"),
    ),
    "huge-page-bloat": (
        remedy("freestone", "asks for no huge pages", {"FREESTONE_OPTIONS": "huge_from_mib=16777216"}),
        remedy("jemalloc", "forbids huge pages", {"MALLOC_CONF": "thp:never"}),
        remedy("mimalloc", "forbids huge pages", {"MIMALLOC_ALLOW_THP": "0"}),
        remedy("tcmalloc", "another allocator"),
    ),
    "huge-pages-missing": (
        remedy("glibc", "asks for huge pages", {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}),
        remedy("jemalloc", "asks for huge pages", {"MALLOC_CONF": "thp:always"}),
        remedy("freestone", "asks for huge pages where memory is dense"),
        remedy("mimalloc", "another allocator"),
    ),
    "first-touch-faults": (
        remedy("glibc", "asks for huge pages", {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}),
        remedy("freestone", "brings pages in before they are touched", {"FREESTONE_OPTIONS": "populate_kib=4096"}),
        *_OTHERS,
    ),
    "lock-contention": _OTHERS,
    "remote-free-pingpong": _OTHERS,
    "quadratic-realloc": _OTHERS,
    "calloc-clearing": (
        remedy("glibc", "large blocks come from the kernel, which has cleared them", FRESH_LARGE),
        *_OTHERS,
    ),
    "leak": (),
    "memory-limit-pressure": _LEAN,
    "own-allocator": (),
    "healthy": (),
}
"""What is tried against each symptom, the likeliest first."""

ADVICE: Final[Mapping[str, tuple[str, ...]]] = {
    "quadratic-realloc": (
        "grow by a factor (half as much again) instead of by a constant: the copies then add up to twice the end",
    ),
    "calloc-clearing": ("ask by malloc where every byte is written anyway, or keep the buffer and use it again",),
    "leak": (
        "no setting cures it: heaptrack or memray name the call sites of what stays",
        "what grows with the work and is meant to stay needs a bound, or a limit",
    ),
    "mapping-churn": ("or keep the buffer and use it again: one that is not freed is not mapped anew",),
    "remote-free-pingpong": ("hand blocks back in batches, or free them where they were asked for",),
    "first-touch-faults": ("memory that is used again costs no fault: keep buffers instead of asking anew",),
    "memory-limit-pressure": ("raise the limit, or run fewer of it beside each other",),
}


LIGHT: Final = 0.25
"""Below this part of the heaviest a symptom is not worth trials of its own."""


def candidates(found: Sequence[Finding], seen: Observations, most: int) -> list[Remedy]:
    """What to try, each once: of the heaviest symptom first, then in turn; never what is in force already."""
    heaviest = max((each.weight for each in found), default=0.0)
    rows = [list(CANDIDATES.get(each.symptom, ())) for each in found if each.weight >= LIGHT * heaviest]
    tried: dict[tuple[str, tuple[tuple[str, str], ...]], Remedy] = {}
    while any(rows) and len(tried) < most:
        for row in rows:
            if row and len(tried) < most:
                each = row.pop(0)
                if _is_fit(each, seen):
                    tried.setdefault((each.allocator, each.settings), each)
    return list(tried.values())


def _is_fit(each: Remedy, seen: Observations) -> bool:
    """Whether it can be tried there, and is not what is in force already."""
    if each.allocator == "glibc" and seen.platform.libc != "glibc":
        return False
    return each.allocator != seen.served_by or bool(each.settings)


def advice(found: Iterable[Finding]) -> list[str]:
    """What no setting does."""
    return [line for each in found for line in ADVICE.get(each.symptom, ())]
