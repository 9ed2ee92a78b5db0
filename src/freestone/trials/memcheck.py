"""Reads the heap summary of ``valgrind --tool=memcheck``: how often and how much a program asked for. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import astuple, dataclass

_LEFT = re.compile(r"^==\d+==\s+in use at exit: ([\d,]+) bytes in ([\d,]+) blocks$", re.MULTILINE)
_TOTAL = re.compile(
    r"^==\d+==\s+total heap usage: ([\d,]+) allocs, ([\d,]+) frees, ([\d,]+) bytes allocated$", re.MULTILINE
)


@dataclass(frozen=True)
class Heap:
    """Requests of one process, or the sum over several. A realloc is an allocation and a free."""

    allocations: int = 0
    frees: int = 0
    allocated_bytes: int = 0
    in_use_bytes: int = 0
    in_use_blocks: int = 0


def parse(text: str) -> Heap | None:
    """One log; None where the summary is missing, as in that of a process that was killed."""
    left, total = _LEFT.search(text), _TOTAL.search(text)
    if left is None or total is None:
        return None
    allocations, frees, allocated = map(_number, total.groups())
    in_use, blocks = map(_number, left.groups())
    return Heap(allocations, frees, allocated, in_use, blocks)


def merged(heaps: Iterable[Heap]) -> Heap:
    """The sum over processes."""
    return Heap(*map(sum, zip(*map(astuple, heaps), strict=True)))


def _number(text: str) -> int:
    return int(text.replace(",", ""))
