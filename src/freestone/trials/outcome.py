"""What a run that was launched comes to: its proof, its figures, its status."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from freestone.allocators import elf
from freestone.records.schema import Configuration, Output, Status, Workload
from freestone.trials import (
    compared,
    ending,
    environment,
    figures,
    gathering,
    libc_complaint,
    loader_complaint,
    memory_limit,
    meters,
    output,
    own_heaps,
    service,
    setting_complaint,
    under_load,
    witness,
)
from freestone.trials.evidence import Rehearsed
from freestone.trials.launch import LaunchReading, LaunchRequest
from freestone.trials.proof import Verdict
from freestone.trials.unwaited import Unwaited, unwaited

_LOADER_FAILED = ": error while loading shared libraries: "


@dataclass(frozen=True)
class Execution:
    """A run and everything that was seen of it."""

    reading: LaunchReading
    verdict: Verdict
    testimonies: list[witness.Testimony]
    output: Output
    figures: dict[str, float] | None
    notes: list[str]
    status: Status
    reason: str | None
    stage_output: str | None = None
    """Of a prepare or conclude that failed."""
    steered: Mapping[str, str] = field(default_factory=dict)
    """Variables that steer an allocator, by the program's own doing."""
    unwaited: Unwaited | None = None
    """Processes that the kernel adds to nobody."""


@dataclass(frozen=True)
class Launched:
    """A run that has ended, and what was asked for."""

    workload: Workload
    configuration: Configuration
    request: LaunchRequest
    given: Mapping[str, str]
    """The whole environment of the program, without what the lab puts in for its own purposes."""
    preloaded: Sequence[str]
    """The lab's own preloads."""
    reports: Path
    """The witness's folder."""
    memory: memory_limit.Before
    """What its control groups counted before it was started."""
    reading: LaunchReading
    driven: service.Driven | None
    """Of a server."""


def outcome(run: Launched, rehearsed: Rehearsed | None, notes: Sequence[str]) -> Execution:
    """Weigh a run whose program was started.

    Args:
        rehearsed: what a rehearsal has shown; stands in for a census where there is none.
        notes: what is to be said of it already.
    """
    reading, request = run.reading, run.request
    said = output.read(request.stdout, request.stderr)
    testimonies = witness.read_folder(run.reports)
    verdict = _verdict(run, testimonies, rehearsed)
    lost = unwaited(testimonies, reading.census.events, run.driven.ignoring if run.driven else ())
    status, reason = _status(run, said, verdict)
    own, missing, unsure = _figures(run, testimonies)
    if status == "ok" and missing is not None:
        status, reason = "failed", missing
    if status == "ok":
        said, unfiltered = compared.digested(said, request.stdout, run.workload, request.result.parent)
        status, reason = ("ok", None) if unfiltered is None else ("failed", unfiltered)
    found = (setting for one in testimonies for setting in one.settings)
    return Execution(
        reading,
        verdict,
        testimonies,
        said,
        own,
        [*notes, *_came_and_went(reading, testimonies), *_survivors(reading), *([lost.note] if lost else []), *unsure],
        status,
        reason,
        steered=environment.steered(found, run.given),
        unwaited=lost,
    )


def _verdict(run: Launched, testimonies: list[witness.Testimony], rehearsed: Rehearsed | None) -> Verdict:
    allocator, heard = run.configuration.allocator, output.head(run.request.stderr)
    needed = [soname for file in run.preloaded for soname in elf.inspect(file).needed if soname != "libc.so.6"]
    settings = environment.under_test(run.configuration)
    verdict = gathering.weighed(
        allocator,
        run.reading,
        testimonies,
        loader_complaint.complaint(heard, [*run.preloaded, *needed]),
        rehearsed,
        settings=settings,
        refused=setting_complaint.complaint(heard, settings),
    )
    heaps = own_heaps.own_heaps(
        own_heaps.files_seen(testimonies, run.reading.census.files),
        gathering.facts,
        os.path.realpath(allocator.file or ""),
        {**run.given, **{name: value for one in testimonies for name, value in one.settings}},
    )
    return replace(verdict, proof=verdict.proof.model_copy(update={"own_heaps": heaps}))


def _status(run: Launched, said: Output, verdict: Verdict) -> tuple[Status, str | None]:
    reading, workload = run.reading, run.workload
    cause = run.memory.cause() if ending.killed(reading) else None
    broken = ending.failure(reading, said, run.request.timeout_s, workload.ignore_status, cause)
    if workload.service is not None and run.driven is not None:
        broken = service.failure(run.driven, workload.service, reading, broken)
    status, reason = ending.status(reading, verdict, broken or ending.outlived(reading, workload))
    past = libc_complaint.explained(said.stderr_tail) if run.configuration.allocator.file else None
    if status == "failed" and past is not None:
        reason = f"{reason} ({past})"
    path_taken = run.request.environment.get("LD_LIBRARY_PATH", "") is None
    if reason is not None and _LOADER_FAILED in said.stderr_tail and path_taken:
        reason += " (LD_LIBRARY_PATH is taken out; --env LD_LIBRARY_PATH puts it back)"
    return status, reason


def _figures(
    run: Launched, testimonies: list[witness.Testimony]
) -> tuple[dict[str, float] | None, str | None, list[str]]:
    """What is told beside the launcher's metrics; why the program's own figures are missing, in one line; and what is
    left out of them."""
    workload, driven = run.workload, run.driven
    own, missing = figures.read(run.request.stdout) if workload.reads == "json" else (None, None)
    if driven is not None:
        events = run.reading.census.events
        ignoring = driven.ignoring

        def lost(since_s: float, until_s: float) -> Unwaited | None:
            return unwaited(testimonies, events, ignoring, since_s, until_s)

        found, unsure = under_load.figures(driven.told, driven.under_load, lost)
        return found, missing, unsure
    if workload.rest_s is not None and workload.reads == "process":
        return meters.idle(testimonies), missing, []
    return own, missing, []


def _came_and_went(reading: LaunchReading, testimonies: list[witness.Testimony]) -> list[str]:
    """Where the kernel does not name what was mapped, the dynamic linker's count is all there is."""
    count = sum(one.departure.unseen for one in testimonies if one.departure is not None)
    if count == 0 or (reading.census.source == "perf" and reading.census.complete):
        return []
    objects = "1 shared object" if count == 1 else f"{count} shared objects"
    return [f"{objects} came and went unseen: not known whose malloc they brought"]


def _survivors(reading: LaunchReading) -> list[str]:
    if reading.survivor_count == 0:
        return []
    names = ", ".join(f"{one.program} (process {one.pid})" for one in reading.survivors[:4])
    more = f" and {reading.survivor_count - 4} more" if reading.survivor_count > 4 else ""
    return [f"left behind by the program and ended: {names}{more}"]
