"""Runs that count something of a results folder, one after the other, each count kept as soon as it is there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from freestone.commands.progress import Progress
from freestone.records.schema import CallCount, HeapCount, InstructionCount

Count = CallCount | InstructionCount | HeapCount


@dataclass(frozen=True)
class CountRun:
    """One run that counts."""

    workload: str
    under: str
    """The configuration, or the tool that takes malloc's place."""
    take: Callable[[], tuple[Count, bool]]
    """Runs it and keeps its count; False where one that failed leaves an earlier one in its place. May raise
    StoreError."""


def take(runs: Sequence[CountRun]) -> list[bool]:
    """Whether each run could be counted. Progress is shown on standard error."""
    progress = Progress(sys.stderr, several=True)
    good = []
    try:
        for number, run in enumerate(runs, start=1):
            progress.step(f"counting {number}/{len(runs)}", run.workload, run.under)
            count, kept = run.take()
            if not kept:
                told = f"{run.workload} under {run.under}: {count.status}: {count.reason}"
                progress.line(f"{told}; the earlier count stays")
            good.append(count.status == "ok")
    finally:
        progress.clear()
    return good
