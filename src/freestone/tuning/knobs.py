"""The settings of each allocator that are worth a search, as knobs with their values in order. Data.

A knob of glibc's never stands alone where it freezes another: setting one of ``mmap_threshold``, ``trim_threshold``,
``top_pad`` and ``mmap_max`` stops both thresholds from following the program, so they are set together or not at all
(malloc.c of glibc, ``do_set_mmap_threshold`` and its kin).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

AS_IS: Final = "as it is"
"""The value that sets nothing."""

KIB: Final = 1 << 10
MIB: Final = 1 << 20
NEVER: Final = str((1 << 64) - 1)


@dataclass(frozen=True)
class Knob:
    """One thing to choose."""

    name: str
    values: Mapping[str, Mapping[str, str]]
    """What a value is called -> the variables that say it; of a variable that is a list, one entry of it."""
    ordered: bool = True
    """Whether the values stand in an order, so that neighbours are alike."""
    under: str | None = None
    """It is chosen only where this other knob is not left as it is."""
    word: str | None = None
    """Stands in the library's file where it knows this knob; None where every version does."""
    since: tuple[int, int] | None = None
    """The first version that knows it; None for all."""


def _entries(
    name: str,
    variable: str,
    form: str,
    values: tuple[str | None, ...],
    *,
    ordered: bool = True,
    word: str | None = None,
) -> Knob:
    """A knob whose values are written by one form; None stands for what sets nothing."""
    written = {
        each if each is not None else AS_IS: {} if each is None else {variable: form.format(each)} for each in values
    }
    return Knob(name, written, ordered, word=word)


def _jemalloc(name: str, *values: str | None, ordered: bool = True) -> Knob:
    return _entries(name, "MALLOC_CONF", f"{name}:{{}}", values, ordered=ordered, word=name)


def _freestone(name: str, *values: str | None, ordered: bool = True) -> Knob:
    return _entries(name, "FREESTONE_OPTIONS", f"{name}={{}}", values, ordered=ordered)


def _mimalloc(name: str, *values: str | None, ordered: bool = True) -> Knob:
    return _entries(name, f"MIMALLOC_{name.upper()}", "{}", values, ordered=ordered, word=name)


def _tcmalloc(name: str, *values: str | None, ordered: bool = True) -> Knob:
    variable = f"TCMALLOC_{name.upper()}"
    return _entries(name, variable, "{}", values, ordered=ordered, word=variable)


KNOBS: Final[Mapping[str, tuple[Knob, ...]]] = {
    "glibc": (
        Knob(
            "map_from",
            {
                AS_IS: {},
                "64 KiB": {"MALLOC_MMAP_THRESHOLD_": str(64 * KIB)},
                "256 KiB": {"MALLOC_MMAP_THRESHOLD_": str(256 * KIB)},
                "1 MiB": {"MALLOC_MMAP_THRESHOLD_": str(MIB)},
                "4 MiB": {"MALLOC_MMAP_THRESHOLD_": str(4 * MIB)},
                "32 MiB": {"MALLOC_MMAP_THRESHOLD_": str(32 * MIB)},
                "never": {"MALLOC_MMAP_MAX_": "0"},
            },
        ),
        Knob(
            "trim_from",
            {
                "64 KiB": {"MALLOC_TRIM_THRESHOLD_": str(64 * KIB)},
                "1 MiB": {"MALLOC_TRIM_THRESHOLD_": str(MIB)},
                "16 MiB": {"MALLOC_TRIM_THRESHOLD_": str(16 * MIB)},
                "128 MiB": {"MALLOC_TRIM_THRESHOLD_": str(128 * MIB)},
                "1 GiB": {"MALLOC_TRIM_THRESHOLD_": str(1024 * MIB)},
                "never": {"MALLOC_TRIM_THRESHOLD_": NEVER},
            },
            under="map_from",
        ),
        Knob(
            "top_pad",
            {
                "0": {"MALLOC_TOP_PAD_": "0"},
                AS_IS: {},
                "1 MiB": {"MALLOC_TOP_PAD_": str(MIB)},
                "16 MiB": {"MALLOC_TOP_PAD_": str(16 * MIB)},
                "64 MiB": {"MALLOC_TOP_PAD_": str(64 * MIB)},
            },
            under="map_from",
        ),
        _entries("arenas", "MALLOC_ARENA_MAX", "{}", ("1", "2", "4", None)),
        Knob(
            "tcache_count",
            {
                "0": {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"},
                AS_IS: {},
                "64": {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=64"},
                "1024": {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=1024"},
            },
            since=(2, 30),
        ),
        Knob(
            "huge_pages",
            {AS_IS: {}, "asked for": {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}},
            since=(2, 35),
        ),
    ),
    "freestone": (
        _freestone("retain_mib", "0", "16", None, "1024"),
        _freestone("retain_percent", "0", None, "200"),
        _freestone("retain_ms", "100", None, "10000"),
        _freestone("heaps", "1", "2", None),
        _freestone("huge_from_mib", "0", None, "16777216"),
        _freestone("populate_kib", None, "256", "4096"),
    ),
    "jemalloc": (
        _jemalloc("background_thread", None, "true", ordered=False),
        _jemalloc("dirty_decay_ms", "0", "1000", None, "60000", "-1"),
        _jemalloc("muzzy_decay_ms", "0", None, "10000"),
        _jemalloc("narenas", "1", "2", "4", None),
        _jemalloc("thp", "never", None, "always"),
        _jemalloc("lg_tcache_max", "12", None, "18", "22"),
    ),
    "mimalloc": (
        _mimalloc("purge_delay", "0", None, "100", "1000", "-1"),
        _mimalloc("arena_eager_commit", "0", "1", None, ordered=False),
        _mimalloc("purge_decommits", "0", None),
        _mimalloc("arena_purge_mult", "1", None),
        _mimalloc("allow_thp", "0", None),
        _mimalloc("eager_commit", "0", None),
        # Versions before 2.1 call them otherwise.
        _mimalloc("decommit_delay", "0", None, "100", "1000"),
        _mimalloc("allow_decommit", "0", None),
        _mimalloc("large_os_pages", None, "1"),
    ),
    "tcmalloc": (
        _tcmalloc("release_rate", "0", None, "10"),
        _tcmalloc("max_total_thread_cache_bytes", str(MIB), str(8 * MIB), None, str(128 * MIB)),
        _tcmalloc("aggressive_decommit", None, "1"),
        _tcmalloc("transfer_num_obj", None, "512", "4096"),
    ),
    "tbb": (
        _entries("huge_pages", "TBB_MALLOC_USE_HUGE_PAGES", "{}", (None, "1")),
        _entries("huge_size", "TBB_MALLOC_SET_HUGE_SIZE_THRESHOLD", "{}", (None, str(64 * MIB), str(1024 * MIB))),
    ),
}
"""By the family of an allocator, which is what its name begins with."""

PRESETS: Final[Mapping[str, tuple[Mapping[str, str], ...]]] = {
    "glibc": (
        {"map_from": "32 MiB", "trim_from": "1 GiB"},
        {"arenas": "2"},
        {"map_from": "64 KiB", "trim_from": "64 KiB", "top_pad": "0"},
        {"map_from": "never", "trim_from": "never"},
        {"arenas": "1"},
        {"map_from": "32 MiB", "trim_from": "1 GiB", "top_pad": "64 MiB"},
        {"map_from": "256 KiB", "trim_from": "1 MiB"},
        {"tcache_count": "0"},
        {"huge_pages": "asked for"},
    ),
    "freestone": (
        {"retain_mib": "0", "retain_percent": "0"},
        {"populate_kib": "4096"},
        {"huge_from_mib": "16777216"},
    ),
    "jemalloc": (
        {"background_thread": "true", "dirty_decay_ms": "1000", "muzzy_decay_ms": "0"},
        {"background_thread": "true", "dirty_decay_ms": "1000", "narenas": "2"},
        {"thp": "always"},
        {"thp": "never"},
    ),
    "mimalloc": ({"purge_delay": "0"}, {"decommit_delay": "0"}, {"allow_thp": "0"}),
    "tcmalloc": ({"max_total_thread_cache_bytes": str(128 * MIB)}, {"aggressive_decommit": "1"}),
    "tbb": ({"huge_pages": "1"},),
}
"""What is known to help some programs: tried beside what the search proposes. A knob that is not named is as it is."""

SEPARATORS: Final[Mapping[str, str]] = {"MALLOC_CONF": ",", "FREESTONE_OPTIONS": ",", "GLIBC_TUNABLES": ":"}
"""Variables that are lists, and what stands between their entries."""
