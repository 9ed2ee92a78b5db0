"""What became of a program that was launched, in one line: how it failed, or that it did not."""

from __future__ import annotations

import signal
from collections.abc import Collection
from typing import Final

from freestone.records.schema import Output, Status, Workload
from freestone.trials.launch import LaunchReading
from freestone.trials.proof import Verdict

_NEVER_STARTED = {
    "not-found": "command not found: {command}",
    "no-interpreter": "the interpreter of {command} is missing",
    "not-executable": "not executable: {command}",
    "bad-format": "not a program for this machine, or a script without a #! line: {command}",
    "files": "the files for the program's {files} cannot be opened: {error}",
    "directory": "cannot enter the directory {directory}: {error}",
    "not-started": "{command} cannot be started: {error}",
}

_KILLED_BELOW: Final = 128 + signal.SIGKILL
"""What a shell ends with when the last command in it was killed."""


def status(reading: LaunchReading, verdict: Verdict, broken: str | None) -> tuple[Status, str | None]:
    """What became of a trial that failed for the reason ``broken``, or did not.

    A cause that lies in the program or the preload explains a failure better than its exit status does; otherwise the
    failure comes first.
    """
    if reading.state == "timeout":
        return "timeout", broken
    if verdict.finding is not None and (broken is None or verdict.finding.cause.structural):
        return "invalid", verdict.finding.text if broken is None else f"{verdict.finding.text}; {broken}"
    return ("ok", None) if broken is None else ("failed", broken)


def never_started(reading: LaunchReading, workload: Workload) -> str | None:
    """Why a program was not started, in one line; None for one that was."""
    if reading.state not in _NEVER_STARTED:
        return None
    files = "output" if workload.input is None else f"input ({workload.input.file}) or output"
    words = {"command": workload.command[0], "directory": workload.directory, "error": reading.error, "files": files}
    return _NEVER_STARTED[reading.state].format(**words)


def killed(reading: LaunchReading) -> bool:
    """Whether a program was ended by SIGKILL, as the kernel does for want of memory, or says so of its own."""
    return reading.signal == signal.SIGKILL or reading.exit_code == _KILLED_BELOW


def failure(
    reading: LaunchReading,
    said: Output,
    timeout_s: float | None,
    fine: Collection[int] = (),
    out_of_memory: str | None = None,
) -> str | None:
    """How a program that was started failed, in one line; None for one that did not.

    Args:
        fine: exit statuses beside 0 that are none of failure.
        out_of_memory: why the kernel has ended a process meanwhile, as the end of a sentence; None where it has not.
    """
    lines = [line.strip() for line in said.stderr_tail.splitlines() if line.strip()]
    last = f": {lines[-1][:160]}" if lines else ""
    match reading.state:
        case "exited" | "signaled" if reading.stopped:
            return "its launcher was stopped for a while (SIGSTOP), so how long the program took is not known"
        case "exited" if reading.exit_code == 0 or reading.exit_code in fine:
            return None
        case "exited" if reading.exit_code == _KILLED_BELOW and out_of_memory is not None:
            return f"exit status {reading.exit_code}: a process of its own was killed{out_of_memory}{last}"
        case "exited":
            return f"exit status {reading.exit_code}{last}"
        case "signaled" if reading.signal == signal.SIGKILL:
            return f"killed by SIGKILL{out_of_memory or ''}{last}"
        case "signaled":
            return f"killed by {_signal_name(reading.signal or 0)}{_sandbox_hint(reading)}{last}"
        case "timeout":
            return f"still running after {timeout_s:g} s" if timeout_s is not None else "timed out"
        case "interrupted":
            return f"the launcher was told to stop by {_signal_name(reading.interrupted_by or 0)}"
        case _:
            return "the program could not be ended"


def outlived(reading: LaunchReading, workload: Workload) -> str | None:
    """Why a program that left processes behind has not ended, in one line; None where that is allowed or it has not.

    Its work may go on in them, so that the end of the first process tells nothing.
    """
    if reading.survivor_count == 0 or workload.survivors == "allow":
        return None
    programs = list(dict.fromkeys(one.program for one in reading.survivors))
    names = ", ".join(programs[:3]) + (", ..." if len(programs) > 3 else "")
    many = f"{reading.survivor_count} processes" if reading.survivor_count > 1 else "a process"
    return (
        f"it left {many} running behind its first one ({names}): --wait-tree measures to the end of the last, "
        "--allow-survivors the first alone"
    )


def _sandbox_hint(reading: LaunchReading) -> str:
    """A program that forbids itself to open files dies of the witness's last words."""
    return " (its own sandbox may forbid the witness's report)" if reading.signal == signal.SIGSYS else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
