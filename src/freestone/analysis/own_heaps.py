"""What no preload reaches, in words: libraries with a heap of their own and runtimes that serve themselves. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Final

from freestone.records.schema import OwnHeap, TrialRecord

_RUNTIMES: Final = ("CPython", "V8", "PHP", "JVM", ".NET")
_NAMED: Final = 6

_HOW_WORDS: Final = {
    "start": "",
    "later": ", opened while the program ran",
    "closed": ", opened while the program ran and closed again",
    "apart": ", in a namespace of its own (dlmopen)",
    "mapped": ", seen by the kernel alone",
}


def sentence(heap: OwnHeap) -> str:
    """One of them in words: ``libarrow.so has a heap of its own: jemalloc (je_malloc)``."""
    name = os.path.basename(heap.file)
    if heap.what in _RUNTIMES:
        text = f"{name} ({heap.what}) serves itself from a heap of its own, which no preload reaches"
        return text + (f"; {heap.remedy}" if heap.remedy else "")
    if heap.what.endswith(" of a library"):
        text = f"{name} takes memory past malloc, by {heap.what}"
    elif heap.what.startswith("libc itself"):
        text = f"{name} takes memory past malloc, from {heap.what}"
    else:
        text = f"{name} has a heap of its own: {heap.what}"
    return text + _HOW_WORDS[heap.how] + (f"; {heap.remedy}" if heap.remedy else "")


def notes(records: Iterable[TrialRecord], configurations: Sequence[str]) -> list[str]:
    """What the trials of one workload have shown, each once.

    Args:
        configurations: all of them. What only some have shown is said of those: they did not do the same.
    """
    measured: set[str] = set()
    shown: dict[str, set[str]] = {}
    for record in records:
        measured.add(record.configuration)
        for heap in record.proof.own_heaps:
            shown.setdefault(sentence(heap), set()).add(record.configuration)
    lines = []
    for text, under in shown.items():
        some = [name for name in configurations if name in under]
        # The allocator under test is itself no heap of its own, so one may be missing for that reason.
        lines.append(text if len(under) >= len(measured) - 1 else f"{text} (under {', '.join(some)} only)")
    return [*lines[:_NAMED], *([f"and {len(lines) - _NAMED} more heaps of their own"] if len(lines) > _NAMED else [])]
