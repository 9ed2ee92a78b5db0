"""Counts system calls of a workload in a run of its own, by strace: counting takes time, so no clock is near."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from freestone.records.schema import CallCount, Configuration, Workload
from freestone.trials.trial import Identity, run_trial

TRACED = "%memory,futex,sched_yield,membarrier"
"""What an allocator asks the kernel for: address space and pages, and waiting for other threads."""

_ROW = re.compile(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(?P<calls>\d+)\s+(?:\d+\s+)?(?P<name>[a-z]\w*)\s*$")


class NoCounter(RuntimeError):
    """strace is not here; the message is one line that says how to get it."""


def strace() -> str:
    """The program that counts.

    Raises:
        NoCounter: it is not here.
    """
    program = shutil.which("strace")
    if program is None:
        raise NoCounter("system calls are counted by strace, which is not here; install the package strace")
    return program


def traced(workload: Workload, options: Sequence[str], names: str) -> Workload:
    """A workload under strace, from its first instruction on, with all that it starts; its time says nothing then.

    Args:
        options: of strace, beside ``-f`` and ``-qq``.
        names: of the system calls, as strace's ``-e trace=`` reads them.

    Raises:
        NoCounter: there is no strace.
    """
    words = [strace(), "-f", "-qq", *options, "-e", f"trace={names}"]
    return workload.model_copy(update={"command": [*words, *workload.command], "reads": "process"})


def count_calls(
    workload: Workload, configuration: Configuration, *, timeout_s: float | None, scratch: Path
) -> CallCount:
    """Run a workload once under a configuration and strace; its whole tree is counted, from the first instruction on.

    Who served malloc is proved as in any other run. What fails is told in the count, not raised.

    Raises:
        NoCounter: there is no strace.
    """
    table = scratch / "calls.txt"
    counted = traced(workload, ["-c", "-o", str(table)], TRACED)
    table.unlink(missing_ok=True)
    record = run_trial(
        counted, configuration, identity=Identity(experiment="calls"), timeout_s=timeout_s, scratch=scratch
    )
    calls = read_table(table.read_text(encoding="utf-8", errors="replace")) if table.exists() else {}
    table.unlink(missing_ok=True)
    return CallCount(
        workload=workload.name,
        configuration=configuration.name,
        status=record.status,
        reason=record.reason,
        calls=calls if record.status == "ok" else {},
    )


def read_table(text: str) -> dict[str, int]:
    """System call -> how often, from the table that ``strace -c`` writes; most frequent first."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        row = _ROW.match(line)
        if row and row["name"] != "total":
            found[row["name"]] = found.get(row["name"], 0) + int(row["calls"])
    return dict(sorted(found.items(), key=lambda each: -each[1]))
