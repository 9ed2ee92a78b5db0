"""Which memory was touched: how much of it malloc can have given, and how many faults were on memory that was new.

A fault has no sender. What is known is how many there were, how much was resident, how much of that no file backs, and
how much malloc had given out: from these come upper bounds, and each is called one.
"""

from __future__ import annotations

from freestone.doctor.observations import Kept, Observations
from freestone.doctor.thresholds import AROUND_KIB, PROCESS_KIB, SAME_PROCESS

_AGAIN = ("munmap", "brk", "heaps")
"""What moves, and makes memory new that was touched before."""


def pages(seen: Observations) -> float:
    """How many pages the tree ever had, as far as that is known: the largest process's, and a little for each other."""
    if seen.cost is None or seen.prices is None:
        return 0.0
    return (_new_kib(seen) + _others_kib(seen)) / seen.prices.page_kib


def anonymous_kib(seen: Observations) -> float | None:
    """How much of what came is no file's, in KiB; None where nobody looked near the peak of the largest process."""
    kept = seen.kept_at_peak
    if kept is None or not near_peak(kept, seen):
        return None
    return _new_kib(seen) * min(1.0, kept.anonymous_kib / kept.rss_kib)


def near_peak(kept: Kept, seen: Observations) -> bool:
    """Whether a look at where memory lies was one at the process that had the peak, and near it."""
    peak_kib = (seen.cost.peak_rss_kib if seen.cost is not None else None) or 0
    return kept.rss_kib > 0 and kept.rss_kib >= SAME_PROCESS * peak_kib


def mallocs_kib(seen: Observations) -> float | None:
    """How much of what came can be malloc's at most, in KiB; None where nothing bounds it.

    malloc gave out no more than was in use or held at the peak, and what it gave and was touched is no file's.
    """
    bounds = [each for each in (_given_kib(seen), anonymous_kib(seen)) if each is not None]
    return min(bounds, default=None)


def first(seen: Observations) -> float | None:
    """Faults on memory that was new: all but those on what was given back and taken again; None if not counted."""
    if seen.cost is None or seen.cost.minor_faults is None:
        return None
    return max(0.0, seen.cost.minor_faults - sum(again(seen, how) for how in _AGAIN))


def mallocs_first(seen: Observations) -> float | None:
    """Of these, how many can lie in malloc's memory at most: one for each page; all where nothing bounds it."""
    faults, most_kib = first(seen), mallocs_kib(seen)
    if faults is None or most_kib is None or seen.prices is None:
        return faults
    return min(faults, most_kib / seen.prices.page_kib)


def again(seen: Observations, how: str) -> float:
    """Faults beyond one for each page that was ever resident: those on memory given back and taken again.

    Where mappings, the end of the heap and threads' heaps all move, each has its part by how often it moved, and none
    more than one for each page that it moved: what is left over has another reason.

    Args:
        how: ``munmap``, ``brk`` or ``heaps``.
    """
    if seen.cost is None or seen.cost.minor_faults is None or seen.prices is None or seen.calls is None:
        return 0.0
    growth = seen.calls.growth
    moves = {
        "munmap": growth.map_unmap_pairs,
        "brk": growth.brk_down_up,
        "heaps": growth.heap_shrinks,
    }
    whole = sum(moves.values())
    excess = max(0.0, seen.cost.minor_faults - _once(seen))
    return min(excess * (moves[how] / whole if whole else 0.0), _moved_kib(seen, how) / seen.prices.page_kib)


def _moved_kib(seen: Observations, how: str) -> float:
    """How much memory was given back, or taken again, in that way, in KiB."""
    names = {"munmap": ("munmap",), "brk": ("brk",), "heaps": ("mprotect", "madvise", "mmap")}[how]
    return sum(each.kib for each in seen.calls.by_kind if each.name in names) if seen.calls is not None else 0.0


def _once(seen: Observations) -> float:
    """How many faults bring in what was ever resident, once: a page each, and some pages of a file together."""
    if seen.prices is None:
        return 0.0
    own_kib = anonymous_kib(seen)
    if own_kib is None:
        return pages(seen)
    file_kib = _new_kib(seen) - own_kib
    return (own_kib + _others_kib(seen)) / seen.prices.page_kib + file_kib / max(AROUND_KIB, seen.prices.page_kib)


def _given_kib(seen: Observations) -> float | None:
    """The most that malloc had given out, or held for it, at once; None where its watcher saw another process."""
    heap, cost = seen.heap, seen.cost
    if heap is None or cost is None:
        return None
    largest_kib = max((point.rss_kib or 0 for point in heap.points), default=0)
    if cost.processes > 1 and largest_kib < SAME_PROCESS * (cost.peak_rss_kib or 0):
        return None
    return max([heap.peak_live_kib, *(point.held_kib or 0 for point in heap.points)])


def _new_kib(seen: Observations) -> int:
    """What came while it was looked at, of the largest process."""
    return 0 if seen.cost is None else max(0, (seen.cost.peak_rss_kib or 0) - seen.cost.resident_before_kib)


def _others_kib(seen: Observations) -> int:
    return 0 if seen.cost is None else PROCESS_KIB * max(0, seen.cost.processes - 1)
