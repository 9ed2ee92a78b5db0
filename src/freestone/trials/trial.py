"""Runs one trial: launch, hear the witness, weigh the proof, write the record."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from freestone import native
from freestone.allocators import elf
from freestone.records.schema import Allocator, Asked, Configuration, Output, Proof, Status, TrialRecord, Workload
from freestone.trials import (
    census,
    compared,
    environment,
    figures,
    meters,
    output,
    own_heaps,
    preload,
    service,
    shelf,
    witness,
)
from freestone.trials.launch import (
    CensusMethod,
    LauncherBroken,
    LauncherKilled,
    LaunchReading,
    LaunchRequest,
    launch,
    permissions,
)
from freestone.trials.proof import (
    Cause,
    Evidence,
    Finding,
    Provider,
    Rehearsed,
    Verdict,
    complaint_about_preload,
    prove,
)

_NEVER_STARTED = {
    "not-found": "command not found: {command}",
    "no-interpreter": "the interpreter of {command} is missing",
    "not-executable": "not executable: {command}",
    "bad-format": "not a program for this machine, or a script without a #! line: {command}",
    "files": "the files for the program's output cannot be opened: {error}",
    "directory": "cannot enter the directory {directory}: {error}",
    "not-started": "{command} cannot be started: {error}",
}


_COUNTER = "libfreestone-counter.so"
_LOADER_FAILED = ": error while loading shared libraries: "


@dataclass(frozen=True)
class Identity:
    """Which trial of which experiment this is."""

    experiment: str
    round: int = 0
    position: int = 0
    repeat: int = 0


@dataclass(frozen=True)
class Rehearsal:
    """What an untimed run has shown of one configuration of one workload.

    ``status`` and ``reason`` say what became of the program itself, as in a record.
    """

    status: Status
    reason: str | None
    proof: Proof
    rehearsed: Rehearsed
    asked: Asked | None = None
    """What the program asked of malloc, where that was counted."""


@dataclass(frozen=True)
class _Run:
    """A run and everything that was seen of it."""

    reading: LaunchReading
    verdict: Verdict
    testimonies: list[witness.Testimony]
    output: Output
    figures: dict[str, float] | None
    notes: list[str]
    status: Status
    reason: str | None


def run_trial(
    workload: Workload,
    configuration: Configuration,
    *,
    identity: Identity,
    timeout_s: float | None,
    scratch: Path,
    rehearsal: Rehearsal | None = None,
    watch: service.Watch = lambda moment: None,
    asked: Asked | None = None,
) -> TrialRecord:
    """Run a workload once under a configuration, under the clock.

    Whatever the program does ends up in the record: ``status`` is ok only for exit status 0 with a valid proof.

    Args:
        workload: what to run.
        configuration: the allocator under test, and its settings.
        identity: goes into the record.
        timeout_s: seconds until the tree is ended; None for no limit.
        scratch: an existing folder for captured output; left as it was found.
        rehearsal: of the same configuration and workload; needed where the kernel refuses a census inside the trial.
        watch: told now and then how a server is.
        asked: what the program asks of malloc, where a rehearsal has counted it; goes into the record.

    Raises:
        LauncherBroken, NativePartMissing: the lab's own parts do not work.
        KeyboardInterrupt: as it comes; the tree is ended first.
    """
    started_at = datetime.now(UTC).isoformat(timespec="microseconds")
    method: CensusMethod = "perf" if permissions().perf else "none"
    run = _run(workload, configuration, timeout_s, scratch, method, rehearsal, watch)
    return TrialRecord(
        experiment=identity.experiment,
        workload=workload.name,
        configuration=configuration.name,
        round=identity.round,
        position=identity.position,
        repeat=identity.repeat,
        started_at=started_at,
        status=run.status,
        reason=run.reason,
        exit_code=run.reading.exit_code,
        signal=run.reading.signal,
        metrics=meters.read(run.reading, run.testimonies, workload.survivors) if run.reading.pid is not None else None,
        output=run.output,
        figures=run.figures,
        notes=run.notes,
        asked=asked,
        survivors=[one.program for one in run.reading.survivors],
        proof=run.verdict.proof,
    )


def rehearse(
    workload: Workload, configuration: Configuration, *, timeout_s: float | None, scratch: Path, counting: bool = False
) -> Rehearsal:
    """Run a workload once without a clock: to warm up, and to take the census where a timed trial may not take it.

    Args and errors are those of :func:`run_trial`.

    Args:
        counting: put a counter in the place of the allocator. The run is then no proof of anything.
    """
    allowed = permissions()
    method: CensusMethod = "perf" if allowed.perf else "ptrace" if allowed.ptrace else "none"
    run = _run(
        workload.model_copy(update={"rest_s": None}), configuration, timeout_s, scratch, method, None, counting=counting
    )
    rehearsed = Rehearsed(run.verdict.sequences, run.verdict.finding, run.verdict.proof.images or 0)
    return Rehearsal(run.status, run.reason, run.verdict.proof, rehearsed, _asked(run.testimonies))


def can_count() -> bool:
    """Whether the counter is installed: it is built where the C library keeps names of its own for its heap (glibc)."""
    try:
        native.path(_COUNTER)
    except native.NativePartMissing:
        return False
    return True


def _asked(testimonies: Sequence[witness.Testimony]) -> Asked | None:
    counted = [one.departure.counted for one in testimonies if one.departure and one.departure.counted]
    if not counted:
        return None
    return Asked(
        calls=sum(each.calls for each in counted),
        most_kib=sum(each.most_kib for each in counted),
        private_kib=sum(each.private_kib for each in counted),
    )


def _run(
    workload: Workload,
    configuration: Configuration,
    timeout_s: float | None,
    scratch: Path,
    method: CensusMethod,
    rehearsal: Rehearsal | None,
    watch: service.Watch = lambda moment: None,
    *,
    counting: bool = False,
) -> _Run:
    with _folders(scratch) as folders:
        stdout, stderr = folders.results / "stdout", folders.results / "stderr"
        preloaded, kept = _preload(workload, configuration, folders.results, counting)
        differing: dict[str, str | None] = {
            **environment.overridden(workload, configuration, os.environ),
            **environment.fillers(workload, configuration, os.environ),
            "LD_PRELOAD": ":".join([*preloaded, *kept]),
            "FREESTONE_WITNESS": str(folders.reports),
            "FREESTONE_WITNESS_REST": None if workload.rest_s is None else str(workload.rest_s),
        }
        request = LaunchRequest(
            command=workload.command,
            result=folders.results / "result.json",
            stdout=stdout,
            stderr=stderr,
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
                reading = launch(request)
            else:
                client = environment.in_force(workload, None, os.environ)
                reading, driven = service.serve(request, workload.service, client, folders.results, watch)
        except (LauncherKilled, service.Occupied) as error:
            return _unmeasured(LaunchReading(version=1, state="lost"), str(error), output.read(stdout, stderr), notes)
        said = output.read(stdout, stderr)
        unstarted = never_started(reading, workload)
        if unstarted is not None:
            return _unmeasured(reading, unstarted, said, notes)
        testimonies = witness.read_folder(folders.reports)
        needed = [soname for file in preloaded for soname in elf.inspect(file).needed if soname != "libc.so.6"]
        complaint = complaint_about_preload(output.head(stderr), [*preloaded, *needed])
        verdict = _weigh(configuration.allocator, reading, testimonies, complaint, rehearsal)
        heaps = own_heaps.own_heaps(
            own_heaps.files_seen(testimonies, reading.census.files),
            _facts,
            os.path.realpath(configuration.allocator.file or ""),
            environment.in_force(workload, configuration, os.environ)
            | {name: value for one in testimonies for name, value in one.settings},
        )
        verdict = replace(verdict, proof=verdict.proof.model_copy(update={"own_heaps": heaps}))
        notes += _came_and_went(reading, testimonies)
        broken = failure(reading, said, timeout_s, workload.ignore_status)
        if workload.service is not None and driven is not None:
            broken = service.failure(driven, workload.service, reading, broken)
        broken = broken or outlived(reading, workload)
        status, reason = _status(reading, verdict, broken)
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
        return _Run(reading, verdict, testimonies, said, own, [*notes, *_survivors(reading)], status, reason)


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
    workload: Workload, configuration: Configuration, folder: Path, counting: bool
) -> tuple[list[str], list[str]]:
    """Our preloads, in order, and the user's, which stay in force behind them."""
    # The witness comes first: it has to see _exit, and libc is itself one of the allocators that are preloaded.
    served = [str(native.path(_COUNTER))] if counting else configuration.allocator.preload
    ours = preload.speakable([str(native.path("libfreestone-witness.so")), *served], folder)
    theirs = preload.named_in(environment.in_force(workload, configuration, os.environ))
    kept = [file for file in theirs if file not in ours]
    return preload.of_equal_length(ours), kept


def _unmeasured(reading: LaunchReading, reason: str, said: Output, notes: list[str]) -> _Run:
    """A run without a figure: the program did not start, or nobody was left to see it end."""
    finding = Finding(Cause.CENSUS, "the program was not seen from its start to its end")
    verdict = Verdict(Proof(valid=False, reason=finding.text), finding, {})
    return _Run(reading, verdict, [], said, None, notes, "failed", reason)


def _weigh(
    allocator: Allocator,
    reading: LaunchReading,
    testimonies: list[witness.Testimony],
    complaint: str | None,
    rehearsal: Rehearsal | None,
) -> Verdict:
    images, complaints = census.images(reading.census.events)
    taken = reading.census.source != "none"
    gap = None if taken and reading.census.complete else reading.census.reason or "the kernel did not take part"
    evidence = Evidence(
        expected=_expected(allocator),
        testimonies=testimonies,
        facts_of=functools.cache(_facts),
        images=images if taken else None,
        endings=census.endings(reading.census.events) if taken and reading.census.complete else None,
        census_gap=gap or (complaints[0] if complaints else None),
        rehearsed=rehearsal.rehearsed if rehearsal else None,
        preload_complaint=complaint,
        witness_libc=_facts_of_witness().libc,
    )
    return prove(evidence)


def _facts(path: str) -> elf.ElfFacts | None:
    return elf.inspect(path) if path.startswith("/") and os.path.exists(path) else None


@functools.cache
def _facts_of_witness() -> elf.ElfFacts:
    return elf.inspect(native.path("libfreestone-witness.so"))


def _expected(allocator: Allocator) -> Provider:
    file = allocator.file or ""
    provider = Provider(allocator.name, os.path.realpath(file) if file else "", allocator.build_id)
    try:
        status = os.stat(file)
    except OSError:
        return provider  # nothing will match it, and the reason will name the file
    facts = elf.inspect(file)
    return replace(
        provider,
        device=(os.major(status.st_dev), os.minor(status.st_dev)),
        inode=status.st_ino,
        machine=facts.machine,
        libc=facts.libc,
    )


def _status(reading: LaunchReading, verdict: Verdict, broken: str | None) -> tuple[Status, str | None]:
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
    words = {"command": workload.command[0], "directory": workload.directory, "error": reading.error}
    return _NEVER_STARTED[reading.state].format(**words)


def failure(reading: LaunchReading, said: Output, timeout_s: float | None, fine: Collection[int] = ()) -> str | None:
    """How a program that was started failed, in one line; None for one that did not.

    Args:
        fine: exit statuses beside 0 that are none of failure.
    """
    lines = [line.strip() for line in said.stderr_tail.splitlines() if line.strip()]
    last = f": {lines[-1][:160]}" if lines else ""
    match reading.state:
        case "exited" if reading.exit_code == 0 or reading.exit_code in fine:
            return None
        case "exited":
            return f"exit status {reading.exit_code}{last}"
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
