"""What no preload reaches: libraries with a heap of their own and runtimes that serve themselves. Pure.

Such a program is proved all the same, for its malloc is the allocator's. But the allocator serves a part of it only,
and whoever wonders why all of them look alike must be told.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, Literal, Protocol

from freestone.records.schema import OwnHeap
from freestone.trials.witness import Testimony

How = Literal["start", "later", "closed", "apart", "mapped"]

_ORDER: Final[tuple[How, ...]] = ("apart", "start", "later", "closed", "mapped")
"""Of two objects from one file, the first of these is told: a copy in another namespace is a second heap."""

_COUNTER: Final = "libfreestone-counter.so"

_REMEDY: Final = {
    "CPython": (
        "PYTHONMALLOC",
        ("malloc", "malloc_debug"),
        "--env PYTHONMALLOC=malloc makes it use malloc for all, at a price in time",
    ),
    "PHP": ("USE_ZEND_ALLOC", ("0",), "--env USE_ZEND_ALLOC=0 makes it use malloc for all, at a price in time"),
}
"""Runtime -> the variable that turns its own heap off, with which values, and how to say it."""


class FileFacts(Protocol):
    """What a file says of itself: :class:`freestone.allocators.elf.ElfFacts`."""

    @property
    def own_malloc(self) -> str | None: ...
    @property
    def exports(self) -> tuple[str, ...]: ...
    @property
    def heap_symbols(self) -> tuple[str, ...]: ...
    @property
    def heap_imports(self) -> tuple[str, ...]: ...
    @property
    def runtime(self) -> str | None: ...
    @property
    def needed(self) -> tuple[str, ...]: ...
    @property
    def soname(self) -> str | None: ...


def files_seen(testimonies: Iterable[Testimony], mapped: Iterable[str]) -> dict[str, How]:
    """Every file that was loaded anywhere in a tree at any time, and how.

    Args:
        testimonies: the witness's.
        mapped: what the kernel saw mapped as code.
    """
    found: dict[str, How] = {}
    for testimony in testimonies:
        if testimony.exe:
            found[testimony.exe] = "start"
        for loaded in testimony.departure.objects if testimony.departure else ():
            file = os.path.realpath(loaded.file)
            found[file] = min(found.get(file, "mapped"), loaded.how, key=_ORDER.index)
    for file in mapped:
        found.setdefault(os.path.realpath(file), "mapped")
    return found


def _with_needed(files: Mapping[str, How], facts_of: Callable[[str], FileFacts | None]) -> dict[str, How]:
    """The files, those that the kernel alone saw and that a program is linked against as there from the start.

    A process that a signal ends does not say what it had loaded; that the loader brings what is linked is known.
    """
    found = dict(files)
    front = [file for file, how in found.items() if how == "start"]
    while front:
        needed = {name for file in front if (facts := facts_of(file)) is not None for name in facts.needed}
        front = [file for file, how in found.items() if how == "mapped" and _is_one_of(file, facts_of(file), needed)]
        found |= dict.fromkeys(front, "start")
    return found


def _is_one_of(file: str, facts: FileFacts | None, sonames: Collection[str]) -> bool:
    return os.path.basename(file) in sonames or (facts is not None and facts.soname in sonames)


def own_heaps(
    files: Mapping[str, How],
    facts_of: Callable[[str], FileFacts | None],
    allocator: str,
    environment: Mapping[str, str],
) -> list[OwnHeap]:
    """The files among those seen that have, or take, memory from elsewhere than the allocator under test.

    Args:
        files: what :func:`files_seen` gave.
        facts_of: what is known of a file; None for one that is gone.
        allocator: real path of the file that provides malloc. What it needs belongs to it.
        environment: the program's.
    """
    provider = facts_of(allocator)
    own = {_COUNTER, os.path.basename(allocator), *(provider.needed if provider else ())}
    served = set(provider.heap_symbols) if provider else set()
    found = []
    for file, how in sorted(_with_needed(files, facts_of).items(), key=lambda each: (_ORDER.index(each[1]), each[0])):
        facts = facts_of(file)
        if facts is None:
            continue
        if _is_libc(facts.soname, file):
            if how == "apart" and "malloc" in facts.exports:
                found.append(OwnHeap(file=file, what="a second libc", how=how))
            continue
        if how != "apart" and (os.path.basename(file) in own or facts.soname in own):
            continue
        what = _what(facts, how, served)
        remedy = None
        if what is None and facts.runtime is not None:
            name, values, remedy = _REMEDY.get(facts.runtime, ("", (), None))
            if environment.get(name) in values:
                continue
            what = facts.runtime
        if what is not None:
            found.append(OwnHeap(file=file, what=what, how=how, remedy=remedy))
    return found


def _what(facts: FileFacts, how: How, served: set[str]) -> str | None:
    """``how`` matters for a malloc: one that is there from the start gives way to a preload, a later one need not."""
    imported = [name for name in facts.heap_imports if name not in served]
    if imported:
        return f"libc itself ({imported[0]})" if imported[0].startswith("__libc_") else f"{imported[0]} of a library"
    if "malloc" in facts.exports:
        return None if how == "start" else "a malloc"
    if facts.heap_symbols and facts.runtime is None:
        return facts.heap_symbols[0]
    return facts.own_malloc.removeprefix("embeds ") if facts.own_malloc else None


def _is_libc(soname: str | None, file: str) -> bool:
    name = soname or os.path.basename(file)
    return name.startswith(("libc.so", "libc.musl", "ld-linux", "ld-musl", "libpthread.so", "ld64.so", "ld.so"))
