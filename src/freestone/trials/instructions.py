"""Counts what a workload executes and asks for, in runs of their own under valgrind: no clock is near."""

from __future__ import annotations

import os
from pathlib import Path

from freestone.records.schema import (
    Configuration,
    FunctionCount,
    HeapCount,
    InstructionCount,
    Status,
    Workload,
)
from freestone.trials import cachegrind, environment, memcheck, output, preload, valgrind
from freestone.trials.ending import failure, never_started
from freestone.trials.evidence import STATIC, Cause
from freestone.trials.launch import LaunchReading, LaunchRequest, ResultLost, launch
from freestone.trials.stage import run_stage
from freestone.trials.trial import Rehearsal, rehearse

FUNCTIONS = 12
"""So many are kept, those with the most instructions."""


def count_instructions(
    workload: Workload, configuration: Configuration, *, timeout_s: float | None, scratch: Path
) -> InstructionCount:
    """Run a workload once under a configuration and cachegrind, which leaves the preload in force; that is proved.

    The command is the one for counting where the workload has one. What fails is told in the count, not raised.

    Raises:
        valgrind.NoValgrind: there is no valgrind.
    """
    chosen = _chosen(workload)

    def told(status: Status, reason: str | None) -> InstructionCount:
        return InstructionCount(
            workload=workload.name,
            configuration=configuration.name,
            status=status,
            reason=reason,
            command=chosen.command,
        )

    with valgrind.folder(scratch) as folder:
        under = valgrind.under("cachegrind", chosen, folder, "--cache-sim=yes", "--cachegrind-out-file={}")
        rehearsal = rehearse(under, configuration, timeout_s=timeout_s, scratch=scratch)
        traces = valgrind.read(folder)
    if rehearsal.status != "ok":
        return told(*_became(rehearsal, traces.complaint()))
    try:
        profile = cachegrind.merged([_parsed(pid, text) for pid, text in traces.images.items()])
    except cachegrind.Damaged as error:
        return told("failed", str(error))
    if not profile.totals:
        return told("failed", "cachegrind left no counts")
    return InstructionCount(
        workload=workload.name,
        configuration=configuration.name,
        status="ok",
        command=chosen.command,
        processes=len(traces.images),
        caches=list(profile.caches),
        instructions=profile.totals[cachegrind.INSTRUCTIONS],
        data_reads=profile.totals[cachegrind.READS],
        data_writes=profile.totals[cachegrind.WRITES],
        d1_misses=sum(profile.totals[name] for name in cachegrind.D1_MISSES),
        lld_misses=sum(profile.totals[name] for name in cachegrind.LL_DATA_MISSES),
        functions=[_function(each) for each in list(profile.functions.values())[:FUNCTIONS]],
        notes=_left_out(traces),
    )


def count_requests(workload: Workload, *, timeout_s: float | None, scratch: Path) -> HeapCount:
    """Run a workload once under memcheck, which takes the place of malloc and counts what is asked of it.

    The program asks the same of every allocator, so this needs none of them. Memory that a program takes past malloc,
    as through TBB's own allocator, is not in it.

    Raises:
        valgrind.NoValgrind: there is no valgrind.
    """
    chosen = _chosen(workload)

    def told(status: Status, reason: str | None) -> HeapCount:
        return HeapCount(workload=workload.name, status=status, reason=reason, command=chosen.command)

    with valgrind.folder(scratch) as folder:
        under = valgrind.under("memcheck", chosen, folder, "--leak-check=no", "--undef-value-errors=no")
        status, reason = _run_alone(under, folder, timeout_s)
        traces = valgrind.read(folder)
    if status != "ok":
        return told(status, traces.complaint() or reason)
    heaps = [heap for text in traces.logs.values() if (heap := memcheck.parse(text)) is not None]
    if not heaps:
        return told("failed", "memcheck left no heap summary")
    sum_ = memcheck.merged(heaps)
    return HeapCount(
        workload=workload.name,
        status="ok",
        command=chosen.command,
        processes=len(heaps),
        allocations=sum_.allocations,
        frees=sum_.frees,
        allocated_bytes=sum_.allocated_bytes,
        in_use_bytes=sum_.in_use_bytes,
        in_use_blocks=sum_.in_use_blocks,
    )


def _chosen(workload: Workload) -> Workload:
    """With the command for counting, where there is one."""
    return workload if workload.counting is None else workload.model_copy(update={"command": workload.counting})


def _became(rehearsal: Rehearsal, complaint: str | None) -> tuple[Status, str | None]:
    """What became of a run, in terms of the program: the file that the kernel saw is the tool's, which is static."""
    if rehearsal.status == "timeout":
        return "timeout", rehearsal.reason
    if complaint is not None:
        return "failed", f"valgrind: {complaint}"
    finding = rehearsal.rehearsed.finding
    reason = rehearsal.reason or ""
    if finding is None or finding.cause is not Cause.STATIC or "/cachegrind-" not in finding.text:
        return rehearsal.status, reason
    other = reason.removeprefix(finding.text).removeprefix("; ")
    if rehearsal.status == "invalid" and not other:
        return "invalid", f"{STATIC}a program of it loads no shared library, so nothing can be preloaded"
    return "failed", f"under valgrind: {other}"


def _run_alone(workload: Workload, folder: Path, timeout_s: float | None) -> tuple[Status, str | None]:
    """Run a workload with no allocator put before it, and nothing proved."""
    broken = run_stage("prepare", workload.stages.prepare, workload, timeout_s=timeout_s, scratch=folder)
    if broken is not None:
        return "failed", broken.reason
    status, why = _launched_alone(workload, folder, timeout_s)
    broken = run_stage("conclude", workload.stages.conclude, workload, timeout_s=timeout_s, scratch=folder)
    return ("failed", broken.reason) if broken is not None and status == "ok" else (status, why)


def _launched_alone(workload: Workload, folder: Path, timeout_s: float | None) -> tuple[Status, str | None]:
    kept = preload.named_in(environment.in_force(workload, None, os.environ))
    stdout, stderr = folder / "stdout", folder / "stderr"
    request = LaunchRequest(
        command=workload.command,
        result=folder / "result.json",
        stdout=stdout,
        stderr=stderr,
        stdin=None if workload.input is None else Path(workload.input.file),
        environment={**environment.overridden(workload, None, os.environ), "LD_PRELOAD": ":".join(kept) or None},
        directory=workload.directory,
        timeout_s=timeout_s,
        counters=False,
    )
    try:
        reading: LaunchReading = launch(request)
    except ResultLost as error:
        return "failed", str(error)
    why = never_started(reading, workload) or failure(reading, output.read(stdout, stderr), timeout_s)
    return ("timeout" if reading.state == "timeout" else "ok" if why is None else "failed"), why


def _parsed(pid: int, text: str) -> cachegrind.Profile:
    try:
        return cachegrind.parse(text)
    except cachegrind.Damaged as error:
        raise cachegrind.Damaged(f"cachegrind's file of process {pid}: {error}") from error


def _function(function: cachegrind.Function) -> FunctionCount:
    return FunctionCount(
        name=function.name,
        file=function.file,
        instructions=function.counts[cachegrind.INSTRUCTIONS],
        data_reads=function.counts[cachegrind.READS],
        data_writes=function.counts[cachegrind.WRITES],
    )


def _left_out(traces: valgrind.Traces) -> list[str]:
    notes = []
    if traces.forks:
        notes.append(f"without {traces.forks} forked processes, whose counts hold their parent's")
    killed = len(traces.logs.keys() - traces.files.keys())
    if killed:
        notes.append(f"without {killed} processes that were killed before they could say anything")
    return notes
