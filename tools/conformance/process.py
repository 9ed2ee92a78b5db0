"""One run of a program: in a session of its own, ended with all its children, at the latest after its time."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

LOOK_S = 5.0
"""Seconds between two looks at a program that has not ended in its time by the clock."""
WORK_LEAST_S = 0.05
"""Processor time between two looks below which a program waits: one that works gets that beside a hundred others."""
SETTINGS = ("LD_", "MALLOC_", "GLIBC_", "MIMALLOC_", "SCUDO_", "TCMALLOC_", "FREESTONE_OPTIONS")
"""Variables of the caller that set up an allocator: no program inherits them."""


@dataclass(frozen=True)
class Ended:
    """How a program ended; ``status`` is negative for a signal, None if it had to be ended after its time."""

    status: int | None
    stdout: str = ""
    stderr: str = ""


def ended(command: Sequence[str], variables: Mapping[str, str], limit_s: float) -> Ended:
    """Run a program with its children until it ends, or end them all after its time.

    The time is a processor's while the program works: a machine with other work stretches all of it. A program that
    waits has to end in the same time by the clock.
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith(SETTINGS)}
    environment |= {"LC_ALL": "C", **variables}
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        status: int | None = None
        wait_s, worked_before = limit_s, 0.0
        while True:
            try:
                stdout, stderr = process.communicate(timeout=wait_s)
                status = process.returncode
                break
            except subprocess.TimeoutExpired:
                worked = worked_s(process.pid)
                if not goes_on(worked_before, worked, limit_s):
                    _end_group(process.pid)
                    stdout, stderr = process.communicate()
                    break
                wait_s, worked_before = LOOK_S, worked
            except KeyboardInterrupt:  # a session of its own: the terminal's signal does not reach it
                _end_group(process.pid)
                raise
        # A child that hangs outlives a parent that ended well.
        _end_group(process.pid)
    return Ended(status, stdout, stderr)


def goes_on(before: float, worked: float, limit_s: float) -> bool:
    """Return whether a program still works after its time by the clock, and had less than its time of a processor."""
    return before + WORK_LEAST_S <= worked < limit_s


def worked_s(group: int) -> float:
    """Return the processor time that the processes of a group have had, with children they have waited for."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            after_name = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if int(after_name[2]) == group:
                ticks += sum(map(int, after_name[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _end_group(leader: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
