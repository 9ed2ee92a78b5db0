"""The settings of each allocator that are worth trying, by name. Data, and which of them a library knows.

A setting of glibc's never freezes another: setting one of ``mmap_threshold``, ``trim_threshold``, ``top_pad`` and
``mmap_max`` stops both thresholds from following the program, so they are set together or not at all (malloc.c of
glibc, ``do_set_mmap_threshold`` and its kin).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from freestone.records.schema import Allocator

_NEVER: Final = str((1 << 64) - 1)


def _glibc(mapped_from: int, trim_from: int, top_pad: int | None = None) -> dict[str, str]:
    """Its thresholds in KiB."""
    words = {"MMAP_THRESHOLD": mapped_from, "TRIM_THRESHOLD": trim_from, "TOP_PAD": top_pad}
    return {f"MALLOC_{name}_": str(kib << 10) for name, kib in words.items() if kib is not None}


def _freestone(options: str) -> dict[str, str]:
    return {"FREESTONE_OPTIONS": options}


def _jemalloc(options: str) -> dict[str, str]:
    return {"MALLOC_CONF": options}


SETTINGS: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = {
    "glibc": {
        "keep-large": _glibc(32 << 10, 1 << 20),
        "never-map": {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": _NEVER},
        "grow-wide": _glibc(32 << 10, 1 << 20, 64 << 10),
        "fresh-large": _glibc(256, 1 << 10),
        "map-from-1m": _glibc(1 << 10, 16 << 10),
        "give-back": _glibc(64, 64, 0),
        "arenas-1": {"MALLOC_ARENA_MAX": "1"},
        "arenas-2": {"MALLOC_ARENA_MAX": "2"},
        "arenas-4": {"MALLOC_ARENA_MAX": "4"},
        "no-thread-cache": {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"},
        "thread-cache-1024": {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=1024"},
        "huge-pages": {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
    },
    "freestone": {
        "give-back": _freestone("retain_mib=0,retain_percent=0"),
        "retain-1g": _freestone("retain_mib=1024"),
        "retain-200-percent": _freestone("retain_percent=200"),
        "retain-100-ms": _freestone("retain_ms=100"),
        "retain-10-s": _freestone("retain_ms=10000"),
        "heaps-1": _freestone("heaps=1"),
        "heaps-2": _freestone("heaps=2"),
        "populate-4m": _freestone("populate_kib=4096"),
        "no-huge-pages": _freestone("huge_from_mib=16777216"),
    },
    "jemalloc": {
        "give-back": _jemalloc("background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0"),
        "narenas-1": _jemalloc("narenas:1"),
        "narenas-2": _jemalloc("narenas:2,background_thread:true,dirty_decay_ms:1000"),
        "no-decay": _jemalloc("dirty_decay_ms:-1"),
        "decay-60-s": _jemalloc("dirty_decay_ms:60000"),
        "small-thread-cache": _jemalloc("lg_tcache_max:12"),
        "large-thread-cache": _jemalloc("lg_tcache_max:22"),
        "huge-pages": _jemalloc("thp:always"),
        "no-huge-pages": _jemalloc("thp:never"),
    },
    "mimalloc": {
        "give-back": {"MIMALLOC_PURGE_DELAY": "0"},
        "purge-after-1-s": {"MIMALLOC_PURGE_DELAY": "1000"},
        "never-purge": {"MIMALLOC_PURGE_DELAY": "-1"},
        "decommit-at-once": {"MIMALLOC_DECOMMIT_DELAY": "0"},
        "no-eager-commit": {"MIMALLOC_ARENA_EAGER_COMMIT": "0"},
        "huge-pages": {"MIMALLOC_LARGE_OS_PAGES": "1"},
        "no-huge-pages": {"MIMALLOC_ALLOW_THP": "0"},
    },
    "tcmalloc": {
        "small-thread-caches": {"TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES": str(1 << 20)},
        "large-thread-caches": {"TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES": str(128 << 20)},
        "give-back": {"TCMALLOC_AGGRESSIVE_DECOMMIT": "1"},
        "release-10": {"TCMALLOC_RELEASE_RATE": "10"},
        "transfer-4096": {"TCMALLOC_TRANSFER_NUM_OBJ": "4096"},
    },
    "tbb": {"huge-pages": {"TBB_MALLOC_USE_HUGE_PAGES": "1"}},
}
"""Family of allocators -> a setting's name -> its variables."""

_SINCE: Final = {"glibc.malloc.tcache_count": (2, 30), "glibc.malloc.hugetlb": (2, 35)}
"""The first version of glibc that knows a tunable."""


def family(allocator: str) -> str | None:
    """The family whose settings an allocator has, by its name or that of its file; None if none are known."""
    name = allocator.lower().removeprefix("lib")
    return next((each for each in SETTINGS if name.startswith(each)), None)


def known(allocator: Allocator) -> dict[str, Mapping[str, str]]:
    """The settings that an allocator's library knows: one that it does not know would be a twin of its plain self."""
    content = b""
    with suppress(OSError):
        content = Path(allocator.file or "").read_bytes()
    version = tuple(int(part) for part in re.findall(r"\d+", allocator.version or "")[:2])
    return {
        name: variables
        for name, variables in SETTINGS.get(family(allocator.name) or "", {}).items()
        if all(_is_known(variable, value, content, version) for variable, value in variables.items())
    }


def _is_known(variable: str, value: str, content: bytes, version: tuple[int, ...]) -> bool:
    if variable == "GLIBC_TUNABLES":
        return version >= _SINCE[value.partition("=")[0]]
    if variable == "MALLOC_CONF":
        return all(option.partition(":")[0].encode() in content for option in value.split(","))
    if variable.startswith("MIMALLOC_"):
        return variable.removeprefix("MIMALLOC_").lower().encode() in content
    return not variable.startswith("TCMALLOC_") or variable.encode() in content
