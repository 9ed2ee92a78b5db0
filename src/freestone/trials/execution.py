"""Runs a workload once under a configuration."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from freestone import native
from freestone.records.schema import Configuration, Output, Proof, Status, Workload
from freestone.trials import ending, environment, launch, memory_limit, output, preload, service, shelf
from freestone.trials.evidence import Cause, Finding, Rehearsed
from freestone.trials.launch import CensusMethod, LauncherBroken, LaunchReading, LaunchRequest, ResultLost
from freestone.trials.outcome import Execution, Launched, outcome
from freestone.trials.proof import Verdict
from freestone.trials.stage import StageFailure, run_stage

COUNTER = "libfreestone-counter.so"
"""Counts what is asked of malloc, in the place of an allocator."""


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
    given = environment.in_force(workload, configuration, os.environ)
    preloaded, kept = _preload(given, configuration, folders.results, stand_in)
    request = _request(workload, configuration, timeout_s, folders, method, [*preloaded, *kept])
    notes = [f"preloaded behind the allocator, as before: {', '.join(kept)}"] if kept else []
    driven: service.Driven | None = None
    memory = memory_limit.Before.now()
    try:
        if workload.service is None:
            reading = launch.launch(request, begun)
        else:
            client = environment.in_force(workload, None, os.environ)
            reading, driven = service.serve(request, workload.service, client, folders.results, watch, begun)
    except (ResultLost, service.Occupied) as error:
        said = output.read(request.stdout, request.stderr)
        cause = memory.cause() if isinstance(error, ResultLost) else None
        reason = str(error) if cause is None else f"{error}; a process was killed{cause}"
        return _unmeasured(LaunchReading(version=1, state="lost"), reason, said, notes)
    unstarted = ending.never_started(reading, workload)
    if unstarted is not None:
        return _unmeasured(reading, unstarted, output.read(request.stdout, request.stderr), notes)
    run = Launched(workload, configuration, request, given, preloaded, folders.reports, memory, reading, driven)
    return outcome(run, rehearsed, notes)


def _request(
    workload: Workload,
    configuration: Configuration,
    timeout_s: float | None,
    folders: _Folders,
    method: CensusMethod,
    preloads: list[str],
) -> LaunchRequest:
    """How the program is started."""
    differing: dict[str, str | None] = {
        **environment.overridden(workload, configuration, os.environ),
        **environment.fillers(workload, configuration, os.environ),
        "LD_PRELOAD": ":".join(preloads),
        "FREESTONE_WITNESS": str(folders.reports),
        "FREESTONE_WITNESS_REST": None if workload.rest_s is None else str(workload.rest_s),
    }
    return LaunchRequest(
        command=workload.command,
        result=folders.results / "result.json",
        stdout=folders.results / "stdout",
        stderr=folders.results / "stderr",
        stdin=None if workload.input is None else Path(workload.input.file),
        environment=differing,
        directory=workload.directory,
        timeout_s=timeout_s,
        census=method,
        whole_tree=workload.survivors == "wait",
    )


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
    given: Mapping[str, str], configuration: Configuration, folder: Path, stand_in: str | None
) -> tuple[list[str], list[str]]:
    """Our preloads, in order, and the user's, which stay in force behind them."""
    # The witness comes first: it has to see _exit, and libc is itself one of the allocators that are preloaded.
    served = [str(native.path(stand_in))] if stand_in is not None else configuration.allocator.preload
    ours = preload.speakable([str(native.path("libfreestone-witness.so")), *served], folder)
    theirs = preload.named_in(given)
    kept = [file for file in theirs if file not in ours]
    return preload.of_equal_length(ours), kept


def _unmeasured(reading: LaunchReading, reason: str, said: Output, notes: list[str]) -> Execution:
    """A run without a figure: the program did not start, or nobody was left to see it end."""
    finding = Finding(Cause.CENSUS, f"the program was not seen from its start to its end: {reason}")
    verdict = Verdict(Proof(valid=False, reason=finding.text), finding, {})
    return Execution(reading, verdict, [], said, None, notes, "failed", reason)
