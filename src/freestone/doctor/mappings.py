"""What /proc/PID/maps and smaps show of malloc: whose library was loaded, and glibc's heaps of threads. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HEAP: Final = 64 << 20
"""What glibc's heaps of threads are aligned to, and reserve, in bytes."""

_BESIDE: Final = 1 << 20
"""So much more without access may follow a heap: the guard of a stack, which the kernel adds to the heap's rest."""

_LINE: Final = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ (\d+)\s*(.*)$")
_LIBRARY: Final = re.compile(
    r"lib(jemalloc|mimalloc|tcmalloc|freestone|snmalloc|rpmalloc|hardened_malloc|tbbmalloc|scudo|hoard)(?![a-z])"
)
_OURS: Final = re.compile(r"libfreestone-(witness|counter|heapwatch)\b")
"""What the lab puts into a program; none of it is a malloc."""


@dataclass(frozen=True)
class Mapping:
    """One line; addresses in bytes, and a name that may be empty."""

    begin: int
    end: int
    rights: str
    inode: int
    name: str

    @property
    def anonymous(self) -> bool:
        """Whether it may be of a heap: of no file, and no other's."""
        return self.inode == 0 and (self.name == "" or self.name.startswith("[anon: glibc: malloc"))


def mapping(line: str) -> Mapping | None:
    """What a line says; None for one that is no head of a mapping."""
    found = _LINE.match(line)
    return None if found is None else Mapping(int(found[1], 16), int(found[2], 16), found[3], int(found[4]), found[5])


def library(mappings: Iterable[Mapping]) -> tuple[str, str] | None:
    """Name of the allocator that has been loaded as a library, and the library's file; None where none has."""
    for file in sorted({each.name for each in mappings if each.inode != 0}):
        name = Path(file.removesuffix(" (deleted)")).name
        found = None if _OURS.match(name) else _LIBRARY.match(name)
        if found is not None:
            return found[1], file
    return None


def thread_heaps(mappings: Sequence[Mapping]) -> list[Mapping]:
    """The writable parts of glibc's heaps of threads, in order; none where another allocator's library serves.

    Such a heap begins at a multiple of 64 MiB and can be written up to some point; its rest up to the next multiple is
    reserved, without any access, and missing where all of it can be written.
    """
    if library(mappings) is not None:
        return []
    found: list[Mapping] = []
    parts: list[Mapping] = []
    for each in mappings:
        follows = bool(parts) and each.begin == parts[-1].end and each.anonymous
        limit = parts[0].begin + HEAP if parts else 0
        if follows and each.rights.startswith("---"):
            found += parts if limit <= each.end <= limit + _BESIDE else []
            parts = []
            continue
        if not (each.anonymous and each.rights.startswith("rw")):
            parts = []
            continue
        if not (follows and each.end <= limit):
            parts = []
            if each.begin % HEAP != 0 or each.end - each.begin > HEAP:
                continue
        parts.append(each)
        if each.end % HEAP == 0:
            found += parts
            parts = []
    return found
