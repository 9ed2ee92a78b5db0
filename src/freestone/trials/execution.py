"""Runs a workload once under a configuration, and holds everything that was seen of it."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from freestone import native
from freestone.allocators import elf
from freestone.records.schema import Configuration, Output, Proof, Status, Workload
from freestone.trials import (
    compared,
    ending,
    environment,
    figures,
    gathering,
    launch,
    loader_complaint,
    meters,
    output,
    own_heaps,
    preload,
    service,
    setting_complaint,
    shelf,
    witness,
)
from freestone.trials.evidence import Cause, Finding, Rehearsed
from freestone.trials.launch import CensusMethod, LauncherBroken, LaunchReading, LaunchRequest, ResultLost
from freestone.trials.proof import Verdict
from freestone.trials.stage import StageFailure, run_stage

COUNTER = "libfreestone-counter.so"
"""Counts what is asked of malloc, in the place of an allocator."""

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


def execute(
    workload: Workload,
    configuration: Configuration,
    timeout_s: float | None,
    scratch: Path,
    method: CensusMethod,
    rehearsed: Rehearsed | None,
    watch: service.Watch = lambda moment: None,
    *,
    stand_in: str | None = None,
    begun: launch.Begun = launch.unobserved,
) -> Execution:
    """Run a workload once, between its prepare and its conclude.

    Arguments and errors are those of :func:`freestone.trials.run_trial`. Without its prepare the program is not run;
    where the run is broken off, there is no conclude.

    Args:
        method: how the census is taken.
        rehearsed: what a rehearsal has shown; stands in for a census where there is none.
        stand_in: file of the lab's own that is preloaded in the place of the allocator: it watches, and passes on.
        begun: told the launcher's number as soon as it has one.
    """
    with _folders(scratch) as folders:
        room = folders.results

        def staged(title: str, command: str | None) -> StageFailure | None:
            return run_stage(title, command, workload, timeout_s=timeout_s, scratch=room)

        unprepared = staged("prepare", workload.stages.prepare)
        if unprepared is not None:
            lost = LaunchReading(version=1, state="lost")
            run = _unmeasured(lost, unprepared.reason, output.read(room / "stdout", room / "stderr"), [])
            return replace(run, stage_output=unprepared.output)
        run = _launched(workload, configuration, timeout_s, folders, method, rehearsed, watch, stand_in, begun)
        unconcluded = staged("conclude", workload.stages.conclude)
        if unconcluded is None:
            return run
        reason = unconcluded.reason if run.reason is None else f"{run.reason}; {unconcluded.reason}"
        status: Status = "failed" if run.status == "ok" else run.status
        return replace(run, status=status, reason=reason, stage_output=unconcluded.output)


def _launched(
    workload: Workload,
    configuration: Configuration,
    timeout_s: float | None,
    folders: _Folders,
    method: CensusMethod,
    rehearsed: Rehearsed | None,
    watch: service.Watch,
    stand_in: str | None,
    begun: launch.Begun,
) -> Execution:
    """The run itself."""
    stdout, stderr = folders.results / "stdout", folders.results / "stderr"
    preloaded, kept = _preload(workload, configuration, folders.results, stand_in)
    differing: dict[str, str | None] = {
        **environment.overridden(workload, configuration, os.environ),
        **environment.fillers(workload, configuration, os.environ),
        **environment.asked_for(configuration),
        "LD_PRELOAD": ":".join([*preloaded, *kept]),
        "FREESTONE_WITNESS": str(folders.reports),
        "FREESTONE_WITNESS_REST": None if workload.rest_s is None else str(workload.rest_s),
    }
    request = LaunchRequest(
        command=workload.command,
        result=folders.results / "result.json",
        stdout=stdout,
        stderr=stderr,
        stdin=None if workload.input is None else Path(workload.input.file),
        environment=differing,
        directory=workload.directory,
        timeout_s=timeout_s,
        census=method,
        whole_tree=workload.survivors == "wait",
    )
    notes = [f"preloaded behind the allocator, as before: {', '.join(kept)}"] if kept else []
    driven: service.Driven | None = None
    try:
        if workload.service is None:
            reading = launch.launch(request, begun)
        else:
            client = environment.in_force(workload, None, os.environ)
            reading, driven = service.serve(request, workload.service, client, folders.results, watch, begun)
    except (ResultLost, service.Occupied) as error:
        return _unmeasured(LaunchReading(version=1, state="lost"), str(error), output.read(stdout, stderr), notes)
    said = output.read(stdout, stderr)
    unstarted = ending.never_started(reading, workload)
    if unstarted is not None:
        return _unmeasured(reading, unstarted, said, notes)
    testimonies = witness.read_folder(folders.reports)
    needed = [soname for file in preloaded for soname in elf.inspect(file).needed if soname != "libc.so.6"]
    complaint = loader_complaint.complaint(output.head(stderr), [*preloaded, *needed])
    settings = environment.under_test(configuration)
    refused = setting_complaint.complaint(output.head(stderr), settings)
    verdict = gathering.weighed(
        configuration.allocator, reading, testimonies, complaint, rehearsed, settings=settings, refused=refused
    )
    heaps = own_heaps.own_heaps(
        own_heaps.files_seen(testimonies, reading.census.files),
        gathering.facts,
        os.path.realpath(configuration.allocator.file or ""),
        environment.in_force(workload, configuration, os.environ)
        | {name: value for one in testimonies for name, value in one.settings},
    )
    verdict = replace(verdict, proof=verdict.proof.model_copy(update={"own_heaps": heaps}))
    notes += _came_and_went(reading, testimonies)
    broken = ending.failure(reading, said, timeout_s, workload.ignore_status)
    if workload.service is not None and driven is not None:
        broken = service.failure(driven, workload.service, reading, broken)
    broken = broken or ending.outlived(reading, workload)
    status, reason = ending.status(reading, verdict, broken)
    if reason is not None and _LOADER_FAILED in said.stderr_tail and differing.get("LD_LIBRARY_PATH", "") is None:
        reason += " (LD_LIBRARY_PATH is taken out; --env LD_LIBRARY_PATH puts it back)"
    own, missing = figures.read(stdout) if workload.reads == "json" else (None, None)
    if status == "ok" and missing is not None:
        status, reason = "failed", missing
    if status == "ok":
        said, unfiltered = compared.digested(said, stdout, workload, folders.results)
        status, reason = ("ok", None) if unfiltered is None else ("failed", unfiltered)
    own = meters.idle(testimonies) if workload.rest_s is not None and workload.reads == "process" else own
    own = driven.figures if driven is not None else own
    given = environment.in_force(workload, configuration, os.environ)
    steered = environment.steered((setting for one in testimonies for setting in one.settings), given)
    notes += _survivors(reading)
    return Execution(reading, verdict, testimonies, said, own, notes, status, reason, steered=steered)


@dataclass(frozen=True)
class _Folders:
    """Where one run keeps its files: its results and output, and the witness's reports."""

    results: Path
    reports: Path


@contextlib.contextmanager
def _folders(scratch: Path) -> Iterator[_Folders]:
    """Folders for one run, gone afterwards."""
    with contextlib.ExitStack() as stack:
        try:
            results = preload.speakable_folder(scratch, "trial-")
            stack.callback(shutil.rmtree, results, ignore_errors=True)
            reports = shelf.new_folder(results)
            stack.callback(shutil.rmtree, reports, ignore_errors=True)
            # Programs that change their user report too, so everybody may enter here and write (not list) there.
            results.chmod(0o711)
            reports.chmod(0o1733)
        except OSError as error:
            raise LauncherBroken(f"cannot work in the folder {scratch}: {error.strerror}") from error
        yield _Folders(results, reports)


def _preload(
    workload: Workload, configuration: Configuration, folder: Path, stand_in: str | None
) -> tuple[list[str], list[str]]:
    """Our preloads, in order, and the user's, which stay in force behind them."""
    # The witness comes first: it has to see _exit, and libc is itself one of the allocators that are preloaded.
    served = [str(native.path(stand_in))] if stand_in is not None else configuration.allocator.preload
    ours = preload.speakable([str(native.path("libfreestone-witness.so")), *served], folder)
    theirs = preload.named_in(environment.in_force(workload, configuration, os.environ))
    kept = [file for file in theirs if file not in ours]
    return preload.of_equal_length(ours), kept


def _unmeasured(reading: LaunchReading, reason: str, said: Output, notes: list[str]) -> Execution:
    """A run without a figure: the program did not start, or nobody was left to see it end."""
    finding = Finding(Cause.CENSUS, f"the program was not seen from its start to its end: {reason}")
    verdict = Verdict(Proof(valid=False, reason=finding.text), finding, {})
    return Execution(reading, verdict, [], said, None, notes, "failed", reason)


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
