"""What no setting does: advice on the program's own code. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from freestone.doctor.finding import Finding
from freestone.doctor.observations import Observations

ADVICE: Final[Mapping[str, tuple[str, ...]]] = {
    "quadratic-realloc": (
        "grow by a factor (half as much again) instead of by a constant: the copies then add up to twice the end",
    ),
    "calloc-clearing": ("ask by malloc where every byte is written anyway, or keep the buffer and use it again",),
    "leak": (
        "no setting cures it: heaptrack or memray name the call sites of what stays",
        "what grows with the work and is meant to stay needs a bound, or a limit",
    ),
    "huge-pages-missing": (
        "a dense heap of its own: mmap with 2 MiB to spare, and madvise(MADV_HUGEPAGE) on what is aligned to them",
    ),
    "mapping-churn": ("or keep the buffer and use it again: one that is not freed is not mapped anew",),
    "remote-free-pingpong": ("hand blocks back in batches, or free them where they were asked for",),
    "first-touch-faults": ("memory that is used again costs no fault: keep buffers instead of asking anew",),
    "memory-limit-pressure": ("raise the limit, or run fewer of it beside each other",),
}

OUTSIDE_MALLOC: Final = (
    "of a mapping of its own: mmap with MAP_POPULATE, or madvise, brings many pages in by one call",
)
"""What no setting does where memory did not come from malloc."""

ALLOW_HUGE_PAGES: Final = (
    "leave out prctl(PR_SET_THP_DISABLE), or start it by what does not set it: no setting and no allocator undoes it"
)
"""What helps first where the program forbids itself what it lacks."""


def advice(found: Iterable[Finding], seen: Observations) -> list[str]:
    """The lines for what was found, in its order."""
    told = []
    for each in found:
        if each.symptom == "huge-pages-missing" and seen.settings.huge_pages_off:
            told.append(ALLOW_HUGE_PAGES)
        told += [*ADVICE.get(each.symptom, ()), *(OUTSIDE_MALLOC if each.outside_malloc else ())]
    return told
