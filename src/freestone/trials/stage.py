"""Runs a command around the runs of a workload: by a shell, without the allocator under test, its output kept."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from freestone.records.schema import Workload
from freestone.trials import environment, escort
from freestone.trials.escort import Errand
from freestone.trials.offspring import Offspring, reap_others

_FIRST_LOOK_S: Final = 0.001
_LOOK_S: Final = 0.05
_TAIL_BYTES: Final = 2048


@dataclass(frozen=True)
class StageFailure:
    """Why a command did not do what it is there for, in one line, and the end of what it has written."""

    reason: str
    output: str


def run_stage(
    title: str, command: str | None, workload: Workload, *, timeout_s: float | None, scratch: Path
) -> StageFailure | None:
    """Run one of a workload's commands and wait for it; what it leaves running in the background goes on.

    It finds the environment that the program finds, but for the allocator's settings and any preload; where the program
    runs; and an empty standard input.

    Args:
        title: what it is called: setup, prepare, conclude, cleanup.
        command: a line for a shell; None for nothing to do.
        timeout_s: seconds after which it is ended and has failed.
        scratch: an existing folder for its output, which is gone afterwards.

    Returns:
        Why it failed; None where it did not.

    Raises:
        KeyboardInterrupt: as it comes; the command is ended first, with everything it has started.
    """
    if command is None:
        return None
    found = environment.in_force(workload, None, os.environ)
    plain = {name: value for name, value in found.items() if name != "LD_PRELOAD"}
    try:
        with tempfile.TemporaryFile(dir=scratch) as output:
            try:
                # It stays in the session: sudo and its like remember by the terminal who has been asked already.
                errand = Errand(command, output, output, None, plain, workload.directory, session=False, leaves=True)
                with escort.begun(errand) as offspring:
                    how = _ended(offspring, timeout_s)
            finally:
                size = output.seek(0, os.SEEK_END)
                output.seek(max(0, size - _TAIL_BYTES))
                said = output.read().decode("utf-8", "replace")
    except OSError as error:
        return StageFailure(f"{title} cannot be run: {(error.strerror or str(error)).lower()}", "")
    if how is None:
        return None
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return StageFailure(f"{title} {how}" + (f": {lines[-1][:160]}" if lines else ""), said)


def _ended(offspring: Offspring, timeout_s: float | None) -> str | None:
    """Wait for the end of a command; how it failed, as the end of a sentence."""
    until = None if timeout_s is None else time.monotonic() + timeout_s
    pause = _FIRST_LOOK_S
    while (seen := _look(offspring.process.pid)) is None:
        reap_others(offspring.process.pid)
        if until is not None and time.monotonic() > until:
            offspring.end()
            return f"was still running after {timeout_s:g} s"
        time.sleep(pause)
        pause = min(_LOOK_S, 2 * pause)
    if seen == os.CLD_STOPPED:
        offspring.end()
        return "was stopped, as a program is that asks the terminal: it has none here"
    status = offspring.process.wait()
    if status == 0:
        return None
    return f"failed with exit status {status}" if status > 0 else f"was ended by {_signal_name(-status)}"


def _look(process: int) -> int | None:
    """What has become of a child, which stays to be waited for; None while it runs."""
    found = os.waitid(os.P_PID, process, os.WEXITED | os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
    return None if found is None else found.si_code


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
