"""What no preload reaches, in words: libraries with a heap of their own and runtimes that serve themselves. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Final

from freestone.records.schema import Asked, OwnHeap, TrialRecord

_RUNTIMES: Final = ("CPython", "V8", "PHP", "JVM", ".NET")
_NAMED: Final = 6
_LITTLE: Final = 0.5
_LARGE_KIB: Final = 16 * 1024
"""Below this a program's memory is mostly its libraries' data and its stacks, of which no allocator has a part."""
_FEW_CALLS: Final = 100

_HOW_WORDS: Final = {
    "start": "",
    "later": ", opened while the program ran",
    "closed": ", opened while the program ran and closed again",
    "apart": ", in a namespace of its own (dlmopen)",
    "mapped": "; what it serves is the same under every allocator (seen by the kernel: its process told nothing)",
}


UNTOUCHED = 1.25
"""From this quotient of what was asked for and what is resident on, some of it was certainly never touched."""


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


def share(asked: Asked | None) -> float | None:
    """The most of a program's memory that can come from malloc, by the peaks of both, 0 to 1; None where not known.

    What was asked for need not be touched: where much more was asked for than is resident at all, nothing is known.
    """
    if asked is None or asked.private_kib <= 0 or asked.most_kib > UNTOUCHED * asked.private_kib:
        return None
    return min(1.0, asked.most_kib / asked.private_kib)


def asked_sentence(asked: Asked | None, *, heaps: bool) -> str | None:
    """What malloc does for the program, in words, where it is so little that its choice matters little.

    Args:
        heaps: whether something is known to have a heap of its own; then the share is told whatever it is.
    """
    part = share(asked)
    if asked is None or part is None:
        return None
    little = (part < _LITTLE and asked.private_kib >= _LARGE_KIB) or asked.calls < _FEW_CALLS
    if not heaps and not little:
        return None
    calls = f" in {asked.calls} call{'' if asked.calls == 1 else 's'}" if asked.calls < _FEW_CALLS else ""
    return f"at most {part:.0%} of this program's memory comes from malloc{calls}".replace("%", " %")


def sentences(asked: Asked | None, heaps: Sequence[OwnHeap]) -> list[str]:
    """Who serves a program's memory, as far as it is not malloc: the share, then who has the rest."""
    first = asked_sentence(asked, heaps=bool(heaps))
    return [*([first] if first else []), *dict.fromkeys(sentence(heap) for heap in heaps)]


def notes(records: Iterable[TrialRecord], configurations: Sequence[str]) -> list[str]:
    """What the trials of one workload have shown, each once.

    Args:
        configurations: all of them. What only some have shown is said of those: they did not do the same.
    """
    measured: set[str] = set()
    asked: Asked | None = None
    shown: dict[str, set[str]] = {}
    for record in records:
        measured.add(record.configuration)
        asked = record.asked or asked
        for heap in record.proof.own_heaps:
            shown.setdefault(sentence(heap), set()).add(record.configuration)
    lines = []
    for text, under in shown.items():
        some = [name for name in configurations if name in under]
        # The allocator under test is itself no heap of its own, so one may be missing for that reason.
        lines.append(text if len(under) >= len(measured) - 1 else f"{text} (under {', '.join(some)} only)")
    first = asked_sentence(asked, heaps=bool(shown))
    if first:
        lines.insert(0, first)
    return [*lines[:_NAMED], *([f"and {len(lines) - _NAMED} more heaps of their own"] if len(lines) > _NAMED else [])]
