"""What can help against a symptom: configurations to try (advice where none cures: :mod:`.in_code`). Pure.

A knob of glibc's never stands alone where it freezes another (research note, section 5.1): setting one of the four of
``mmap_threshold``, ``trim_threshold``, ``top_pad``, ``mmap_max`` stops both thresholds from following the program
(:mod:`freestone.doctor.knobs`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from freestone.analysis.pareto import Goal
from freestone.doctor import knobs
from freestone.doctor.finding import Finding
from freestone.doctor.knobs import Unfit
from freestone.doctor.observations import CHOICE, Growth, Observations
from freestone.doctor.thresholds import FEW_MOVES

KEEP_LARGE: Final = {"MALLOC_MMAP_THRESHOLD_": "33554432", "MALLOC_TRIM_THRESHOLD_": "1073741824"}
"""32 MiB is the most that every glibc takes for the first."""
NEVER_MAP: Final = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "18446744073709551615"}
GIVE_BACK: Final = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_TOP_PAD_": "0"}
FRESH_LARGE: Final = {"MALLOC_MMAP_THRESHOLD_": "262144", "MALLOC_TRIM_THRESHOLD_": "1048576"}
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
    kernel: tuple[tuple[str, str], ...] = ()
    """Switches of the kernel's, as in a configuration: of the whole machine, and tried with consent alone."""
    huge_pages_off: bool = False
    """Under prctl(PR_SET_THP_DISABLE)."""

    @property
    def is_plain(self) -> bool:
        """Whether it is an allocator as it is, without a setting or a switch."""
        return not (self.settings or self.kernel or self.huge_pages_off)

    @property
    def wants_large_pages(self) -> bool:
        """Whether it is for nothing where the kernel gives the process none."""
        asks = ("glibc.malloc.hugetlb=", "thp:always")
        return bool(self.kernel) or any(word in value for _, value in self.settings for word in asks)


def remedy(allocator: str, why: str, settings: Mapping[str, str] | None = None) -> Remedy:
    """A remedy with its settings in order."""
    return Remedy(allocator, tuple((settings or {}).items()), why)


def title(each: Remedy) -> str:
    """What it is, in one line."""
    settings = [f"{name}={value}" for name, value in each.settings]
    kernel = [f"{name}={word}" for name, word in each.kernel]
    prctl = ["PR_SET_THP_DISABLE"] if each.huge_pages_off else []
    return " ".join([each.allocator, *settings, *kernel, *prctl])


def folios(allocator: str, kib: int) -> Remedy:
    """An allocator as it is, while the kernel gives folios of some KiB."""
    why = f"a page fault brings in {kib} KiB where it can (a switch of the kernel's)"
    return Remedy(allocator, (), why, kernel=((f"hugepages-{kib}kB", "always"),))


_FREESTONE: Final = remedy("freestone", "keeps what is used again soon and gives the rest back by itself")
_MIMALLOC: Final = remedy("mimalloc", "another allocator")
_JEMALLOC: Final = remedy("jemalloc", "another allocator")
_TCMALLOC: Final = remedy("tcmalloc", "another allocator")
_FOLIOS: Final = (folios("glibc", 64), _FREESTONE, folios("freestone", 64), folios("glibc", 16))
NO_HUGE_PAGES: Final = Remedy("glibc", (), "its process has no huge pages (prctl)", huge_pages_off=True)


_OTHERS: Final = (_FREESTONE, _MIMALLOC, _JEMALLOC, _TCMALLOC)
_WITH_FOLIOS: Final = (*_FOLIOS, *(each for each in _OTHERS if each is not _FREESTONE))

_CHURN: Final = (
    remedy("glibc", "large blocks stay in the heap, and the heap keeps its end", KEEP_LARGE),
    remedy("glibc", "no block has a mapping of its own, and nothing is given back", NEVER_MAP),
    *_WITH_FOLIOS,
)

_LEAN: Final = (
    remedy("glibc", "large blocks go back at once, and the end of the heap", GIVE_BACK),
    remedy("freestone", "gives the rest back by itself"),
    remedy("freestone", "gives back at once", {"FREESTONE_OPTIONS": "retain_mib=0,retain_percent=0"}),
    _JEMALLOC,
    remedy(
        "jemalloc",
        "a thread of its own gives back after a second",
        {"MALLOC_CONF": "background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0"},
    ),
    _MIMALLOC,
    remedy("mimalloc", "gives back at once", {"MIMALLOC_PURGE_DELAY": "0"}),
    _TCMALLOC,
)

CANDIDATES: Final[Mapping[str, tuple[Remedy, ...]]] = {
    "mapping-churn": _CHURN,
    "trim-churn": _CHURN,
    "mprotect-growth": (
        remedy("glibc", "all threads share the main heap", {"MALLOC_ARENA_MAX": "1"}),
        remedy("glibc", "heaps grow by 64 MiB at a time", GROW_WIDE),
        *_WITH_FOLIOS,
    ),
    "retention-after-peak": _LEAN,
    "pinned-top-fragmentation": _LEAN,
    "slab-fragmentation": _LEAN,
    "arena-bloat": (
        remedy("glibc", "at most two heaps", {"MALLOC_ARENA_MAX": "2"}),
        remedy("glibc", "one heap", {"MALLOC_ARENA_MAX": "1"}),
        _JEMALLOC,
        remedy(
            "jemalloc", "at most two heaps", {"MALLOC_CONF": "narenas:2,background_thread:true,dirty_decay_ms:1000"}
        ),
        *(each for each in _LEAN if each.allocator == "jemalloc" and each is not _JEMALLOC),
        *(each for each in _LEAN if each.allocator not in ("glibc", "jemalloc")),
    ),
    "thread-cache-bloat": (
        remedy("glibc", "threads have no caches", {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}),
        *(each for each in _LEAN if each.allocator != "glibc"),
    ),
    "huge-page-bloat": (
        NO_HUGE_PAGES,
        _FREESTONE,
        remedy("freestone", "asks for no huge pages", {"FREESTONE_OPTIONS": "huge_from_mib=16777216"}),
        _JEMALLOC,
        remedy("jemalloc", "forbids huge pages", {"MALLOC_CONF": "thp:never"}),
        _MIMALLOC,
        remedy("mimalloc", "forbids huge pages", {"MIMALLOC_ALLOW_THP": "0"}),
        _TCMALLOC,
    ),
    "huge-pages-missing": (
        remedy("glibc", "asks for huge pages", {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}),
        *_FOLIOS,
        _JEMALLOC,
        remedy("jemalloc", "asks for huge pages", {"MALLOC_CONF": "thp:always"}),
        _MIMALLOC,
    ),
    "first-touch-faults": (
        remedy("glibc", "asks for huge pages", {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}),
        *_FOLIOS[:2],
        remedy("freestone", "brings pages in before they are touched", {"FREESTONE_OPTIONS": "populate_kib=4096"}),
        *_WITH_FOLIOS[2:],
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
"""What is tried against each symptom, the likeliest first.

An allocator with a setting or a switch stands behind that allocator alone, with no other allocator between: else the
setting would be credited with what the allocator does. glibc alone is the untouched program.
"""

LIGHT: Final = 0.25
"""Below this part of the heaviest that can be cured a symptom is not worth trials of its own."""


@dataclass(frozen=True)
class Plan:
    """What to try, the likeliest first; and what is not tried though it is for what was found, with why not."""

    tried: Sequence[Remedy]
    left_out: Sequence[tuple[Remedy, str]]


def plan(
    found: Sequence[Finding],
    seen: Observations,
    most: int,
    *,
    goal: Goal = "balanced",
    kernel: str | None = None,
    no_room: str | None = None,
) -> Plan:
    """What to try, each once: for what the goal is about first, of the heaviest symptom first, then in turn; never what
    is in force already.

    Args:
        most: remedies in all.
        goal: symptoms of time come first for time, of memory for memory.
        kernel: why the kernel's switches are not to be set; None where they may be.
        no_room: why there are no more than ``most``; None where that needs no word.
    """
    fixed = CHOICE in seen.unseen
    curable = [each for each in found if CANDIDATES.get(each.symptom) and not each.outside_malloc and not fixed]
    concerned = [each for each in curable if goal == "balanced" or (each.memory is not None) == (goal == "memory")]
    chosen: dict[object, Remedy] = {}
    left_out: dict[object, tuple[Remedy, str]] = {}
    for findings in (concerned, [each for each in curable if each not in concerned]):
        heaviest = max((each.weight for each in findings), default=0.0)
        rows = [list(CANDIDATES[each.symptom]) for each in findings if _is_heavy(each, heaviest)]
        while any(rows):
            for row in rows:
                taken = False
                while row and not taken:
                    each = row.pop(0)
                    fitted = fit(each, seen)
                    if isinstance(fitted, Unfit):
                        left_out.setdefault(each, (each, fitted.why))
                    elif fitted is not None and fitted.kernel and kernel is not None:
                        left_out.setdefault(each, (each, kernel))
                    elif fitted is not None and replace(fitted, why="") not in chosen:
                        chosen[replace(fitted, why="")] = fitted
                        taken = True
    waiting = [] if no_room is None else [(each, no_room) for each in list(chosen.values())[most:]]
    return Plan(list(chosen.values())[:most], [*left_out.values(), *waiting])


def _is_heavy(each: Finding, heaviest: float) -> bool:
    """Whether a symptom is worth trials of its own; one whose share is not known may be."""
    return (each.time is None and each.memory is None) or each.weight >= LIGHT * heaviest


HUGETLB_SINCE: Final = (2, 35)
"""glibc that knows ``glibc.malloc.hugetlb``."""


def fit(each: Remedy, seen: Observations) -> Remedy | Unfit | None:
    """A remedy as it can be tried there, why it cannot, or None where it is in force already or for another libc."""
    glibc = each.allocator == "glibc"
    if glibc and seen.platform.libc != "glibc":
        return None
    if each.wants_large_pages and seen.settings.huge_pages_off:
        return Unfit("the program forbids itself huge pages and folios: prctl(PR_SET_THP_DISABLE)")
    if _maps_what_is_too_large(seen) and dict(each.settings) == KEEP_LARGE:
        return Unfit("each block that is mapped is larger than 32 MiB, the most that the threshold for mappings can be")
    if each.huge_pages_off and (seen.settings.huge_pages_off or seen.platform.huge_pages == "never"):
        return None
    if any(seen.platform.folios.get(_kib(name)) == word for name, word in each.kernel):
        return None
    if dict(each.settings).get(knobs.TUNABLES, "").startswith("glibc.malloc.hugetlb") and (
        seen.platform.huge_pages == "never" or _version(seen.platform.libc_version) < HUGETLB_SINCE
    ):
        return None
    settings = knobs.combined(dict(each.settings), seen, glibc=glibc)
    if isinstance(settings, Unfit):
        return settings
    if each.settings and settings.items() <= seen.settings.environment.items():
        return None
    changes = each.allocator != seen.served_by or settings or each.kernel or each.huge_pages_off
    return replace(each, settings=tuple(settings.items())) if changes else None


def _maps_what_is_too_large(seen: Observations) -> bool:
    """Whether no mapping that comes and goes is one that glibc's threshold can keep in the heap."""
    growth = seen.calls.growth if seen.calls is not None else Growth()
    return growth.map_unmap_pairs >= FEW_MOVES and growth.pairs_128k_32m == 0 and growth.brk_down_up == 0


def _kib(name: str) -> int:
    return int(name.removeprefix("hugepages-").removesuffix("kB"))


def _version(text: str | None) -> tuple[int, ...]:
    return tuple(int(part) for part in (text or "").split(".") if part.isdigit())
