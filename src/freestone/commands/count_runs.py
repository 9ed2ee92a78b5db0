"""Runs that count something of a results folder, one after the other, each count kept as soon as it is there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from freestone.commands.progress import Progress
from freestone.records.schema import CallCount, HeapCount, InstructionCount, Workload
from freestone.trials import run_stage

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


@contextmanager
def set_up(workloads: Sequence[Workload], timeout_s: float | None, scratch: Path) -> Iterator[list[Workload]]:
    """Those of the workloads whose setup succeeds, as long as it is entered; all are cleaned up after.

    Args:
        timeout_s: seconds that each of these commands may take; None for no limit.
        scratch: a folder for their output.
    """
    begun: list[Workload] = []

    def staged(title: str, command: str | None, workload: Workload) -> bool:
        failure = run_stage(title, command, workload, timeout_s=timeout_s, scratch=scratch)
        if failure is not None:
            print(f"freestone: {workload.name}: {failure.reason}", file=sys.stderr)
        return failure is None

    try:
        ready = []
        for workload in workloads:
            begun.append(workload)
            if staged("setup", workload.stages.setup, workload):
                ready.append(workload)
        yield ready
    finally:
        for workload in reversed(begun):
            staged("cleanup", workload.stages.cleanup, workload)
