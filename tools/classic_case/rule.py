"""glibc's rule for large blocks, played: what a program that frees in reverse order costs in each call. Pure.

After malloc.c of glibc 2.36 (``sysmalloc``, ``systrim``, ``__libc_free``); blocks here are above 64 KiB, from where on
each free looks at the end of the heap. Sizes are bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

KIB: Final = 1024
PAGE: Final = 4 * KIB
HEADER: Final = 16
"""Before each block; what is asked for and this is rounded up to a multiple of 16."""
LEAST: Final = 32
"""The heap's end never gets smaller."""
MOST_DYNAMIC: Final = 32 << 20
"""A freed mapping below this moves the thresholds; one of just as much does not, by a bit that is set in its size."""
CACHE: Final = 0x290
"""What a thread's cache of small blocks takes, the first in the heap."""
LIVES_ON: Final = 1040
"""The block of 1 KiB that the program keeps, with its header."""


BELOW: Final = CACHE + LIVES_ON
"""What lies below the matrices."""


@dataclass(frozen=True)
class Setting:
    """How glibc is set."""

    top_pad: int = 128 * KIB
    """What is asked for beyond a request when the heap grows, and kept when it shrinks."""
    mmap_threshold: int = 128 * KIB
    trim_threshold: int = 128 * KIB
    maps: bool = True
    """Whether blocks may be mappings of their own."""
    moves: bool = True
    """Whether the thresholds move: they do until one of all these is set."""


@dataclass(frozen=True)
class PerCall:
    """What one call of the program costs, on average."""

    brk: float
    mmap: float
    faults: float


@dataclass
class Heap:
    """The end of the main heap, and what was counted so far. Places are bytes from the heap's begin."""

    setting: Setting
    top: int = BELOW
    end: int = 0
    touched: int = 0
    """Up to here pages are there."""
    brk: int = 0
    mmap: int = 0
    faults: int = 0
    mmap_threshold: int = field(init=False)
    trim_threshold: int = field(init=False)

    def __post_init__(self) -> None:
        self.mmap_threshold, self.trim_threshold = self.setting.mmap_threshold, self.setting.trim_threshold
        self.end = _up(CACHE + self.setting.top_pad + LEAST, PAGE)
        self.touched = PAGE

    def malloc(self, size: int) -> int | None:
        """A block of which each page is written: its chunk's size, or None where it is a mapping of its own."""
        chunk = _up(size + HEADER // 2, 16)
        if self.end - self.top < chunk + LEAST:
            if self.setting.maps and chunk >= self.mmap_threshold:
                self.mmap += 1
                self.faults += _up(size + HEADER, PAGE) // PAGE
                return None
            self.brk += 1
            self.end += _up(chunk + self.setting.top_pad + LEAST - (self.end - self.top), PAGE)
        self.top += chunk
        written = _up(self.top + HEADER, PAGE)  # the size of the rest stands behind the block
        self.faults += max(0, written - self.touched) // PAGE
        self.touched = max(self.touched, written)
        return chunk

    def free(self, size: int, chunk: int | None) -> None:
        """Take the last block back that is still there."""
        if chunk is None:
            mapped = _up(_up(size + HEADER // 2, 16) + HEADER // 2, PAGE)
            if self.setting.moves and self.mmap_threshold < mapped < MOST_DYNAMIC:
                self.mmap_threshold, self.trim_threshold = mapped, 2 * mapped
            return
        self.top -= chunk
        free = self.end - self.top
        if free < self.trim_threshold:
            return
        given_back = max(0, free - LEAST - 1 - self.setting.top_pad) // PAGE * PAGE
        if given_back > 0:
            self.brk += 1
            self.end -= given_back
            self.touched = min(self.touched, self.end)


def _up(size: int, step: int) -> int:
    return -(-size // step) * step


def per_call(size: int, matrices: int, setting: Setting, *, calls: int = 500, below: int = BELOW) -> PerCall:
    """What a call costs of a program that asks for ``matrices`` blocks, writes each page, frees them in reverse order.

    The average over ``calls`` calls from the program's start, as it is counted; ``below`` bytes, at most a page, live
    on below the blocks.
    """
    heap = Heap(setting, below)
    for _ in range(calls):
        blocks = [heap.malloc(size) for _ in range(matrices)]
        for block in reversed(blocks):
            heap.free(size, block)
    return PerCall(heap.brk / calls, heap.mmap / calls, heap.faults / calls)
