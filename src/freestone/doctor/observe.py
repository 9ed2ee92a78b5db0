"""Takes observations, a part at a time, each in the run that disturbs it least; timing and tracing never share one."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from freestone.doctor import call_sites, heap_watch, memory_calls, platform, prices
from freestone.doctor.course import Course
from freestone.doctor.observations import CHOICE, Cost, Kept, Observations, OwnHeap, Settings
from freestone.doctor.touched import near_peak
from freestone.native import NativePartMissing
from freestone.records.schema import Configuration, Workload
from freestone.trials import Identity, permissions, rehearse, run_trial
from freestone.trials.calls import NoCounter, traced
from freestone.trials.environment import in_force, steers
from freestone.trials.evidence import OWN_MALLOC, STATIC
from freestone.trials.execution import execute
from freestone.trials.launch import CensusMethod
from freestone.trials.outcome import Execution
from freestone.trials.trial import Rehearsal

TOO_SHORT_S: Final = 0.05
"""What ends sooner cannot be looked at from outside."""

_RUNS: Final = 3

WORTH_STACKS: Final = 100
"""With fewer calls about memory nobody needs to know where they come from: a start alone makes dozens."""

STACKS_S: Final = 6.0
"""For so long stacks are taken."""


@dataclass(frozen=True)
class Patient:
    """What is looked at, and how."""

    workload: Workload
    configuration: Configuration
    """Its allocator as it is, without remedies."""
    libc: str | None
    environment: Mapping[str, str]
    """That it inherits."""
    timeout_s: float | None
    scratch: Path


def _platform(seen: Observations, patient: Patient) -> Observations:
    found = in_force(patient.workload, patient.configuration, patient.environment)
    taken_out = {name: value for name, value in patient.environment.items() if name not in found}
    settings = Settings(environment=steering(found), taken_out=steering(taken_out))
    return seen.model_copy(update={"platform": platform.describe(patient.libc), "settings": settings})


def steering(environment: Mapping[str, str]) -> dict[str, str]:
    """What steers an allocator in it."""
    return {name: value for name, value in environment.items() if steers(name) and not name.startswith("LD_")}


def _prices(seen: Observations, patient: Patient) -> Observations:
    try:
        return seen.model_copy(update={"prices": prices.take()})
    except (prices.NotPriced, NativePartMissing) as error:
        return _without(seen, "prices", str(error))


def _cost(seen: Observations, patient: Patient) -> Observations:
    """Time, faults and memory of runs that nobody watches; and what no allocator reaches."""
    records = []
    rehearsal = _rehearsed(patient)
    begun_s = time.monotonic()
    for number in range(_RUNS):
        record = run_trial(
            patient.workload,
            patient.configuration,
            identity=Identity("doctor", round=number),
            timeout_s=patient.timeout_s,
            scratch=patient.scratch,
            rehearsal=rehearsal,
        )
        static = record.status == "invalid" and (record.reason or "").startswith(STATIC)
        if not (record.status == "ok" or static) or record.metrics is None:
            return _unmeasured(seen, record.reason or record.status)
        if static:  # what it costs needs no proof of whose malloc it has
            seen = _without(seen, CHOICE, "it is static: no allocator can be put under it, and its heap not be watched")
        records.append(record)
        if time.monotonic() - begun_s > 10:
            break
    trial_s = (time.monotonic() - begun_s) / len(records)
    metrics = [record.metrics for record in records if record.metrics is not None]
    middle = sorted(metrics, key=lambda each: each.cpu_s or 0.0)[len(metrics) // 2]
    if middle.user_s is None or middle.sys_s is None:
        return _without(seen, "cost", "nobody waited for some of its processes, so its processor time is not known")
    heaps = [
        OwnHeap(what=f"{Path(heap.file).name}: {heap.what}", remedy=heap.remedy) for heap in records[0].proof.own_heaps
    ]
    return seen.model_copy(
        update={
            "cost": Cost(
                runs=len(metrics),
                wall_s=middle.wall_s,
                user_s=middle.user_s,
                sys_s=middle.sys_s,
                minor_faults=middle.minor_faults,
                major_faults=middle.major_faults,
                peak_rss_kib=middle.peak_rss_kib,
                end_rss_kib=middle.end_rss_kib,
                voluntary_switches=middle.voluntary_switches,
                most_voluntary_switches=max(
                    (each.voluntary_switches for each in metrics if each.voluntary_switches is not None), default=None
                ),
                involuntary_switches=middle.involuntary_switches,
                processes=records[0].proof.images or 1,
                trial_s=trial_s,
            ),
            "own_heaps": heaps,
            "settings": seen.settings.model_copy(update={"scripts": dict(records[0].steered)}),
        }
    )


def _unmeasured(seen: Observations, why: str) -> Observations:
    """A program that no allocator can be put into is known to have one of its own, and that is a finding."""
    _, refused, whose = why.partition(OWN_MALLOC)
    if refused:
        seen = seen.model_copy(update={"own_heaps": [OwnHeap(what=f"{whose}, which", share=None)]})
    return _without(seen, "cost", why)


def _course(seen: Observations, patient: Patient) -> Observations:
    if seen.cost is not None and seen.cost.wall_s < TOO_SHORT_S:
        return _without(seen, "course", f"it ends after {seen.cost.wall_s * 1000:.0f} ms, too soon to be looked at")
    with Course() as course:
        run = _run(patient, patient.workload, begun=course.begin)
    broken = _broken(run, patient.workload)
    if broken is not None:
        return _without(seen, "course", broken)
    if not course.points:
        return _without(seen, "course", "it ended before it could be looked at")
    changed: dict[str, object] = {"course": course.points}
    changed |= {"kept_at_peak": course.at_peak} if course.at_peak is not None else {}
    changed |= {"kept_at_end": course.at_end} if course.at_end is not None else {}
    if course.at_peak is not None and course.at_peak.huge_pages_off:
        changed["settings"] = seen.settings.model_copy(update={"huge_pages_off": True})
    return seen.model_copy(update={**changed, "own_heaps": _with_shares(seen, course.at_peak)})


def _heap(seen: Observations, patient: Patient) -> Observations:
    if seen.platform.libc != "glibc":
        return _without(seen, "heap", "the heap is watched under glibc alone")
    folder = patient.scratch / "heapwatch"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o1733)
    told = {**patient.workload.environment, heap_watch.FOLDER: str(folder)}
    try:
        workload = patient.workload.model_copy(update={"environment": told})
        run = _run(_limited(patient, seen), workload, stand_in=heap_watch.WATCHER)
        found = heap_watch.read_folder(folder, run.reading.started_monotonic_s + run.reading.wall_s)
    except NativePartMissing as error:
        return _without(seen, "heap", str(error))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    broken = _broken(run, workload)
    if broken is not None:  # unwatched it did its work: of a part of it nothing can be said
        return _without(seen, "heap", f"it failed while it was watched ({broken})")
    if found is None:
        return _without(seen, "heap", "no process of it said what it asked for: static, or of another libc")
    if not found.complete:
        seen = _without(
            seen,
            "heap at its end",
            "it left without a last word (a signal, or _exit): how much free memory could be given back is not known",
        )
    whole_s, watched_s = _cpu_s(seen), run.reading.user_s + run.reading.sys_s
    if whole_s > 0:
        found = found.model_copy(update={"disturbance": watched_s / whole_s})
    seen = seen.model_copy(update={"heap": found})
    return seen.model_copy(update={"own_heaps": _with_shares(seen, seen.kept_at_peak)})


def _calls(seen: Observations, patient: Patient) -> Observations:
    if patient.workload.service is not None:
        return _without(seen, "calls", "a server is not traced: its load would wait for the tracer")
    log = patient.scratch / "calls.strace"
    try:
        run = _traced(patient, ["--seccomp-bpf", "-ttt"], log, memory_calls.TRACED)
        broken = _broken(run, patient.workload)
        if broken is not None:
            return _without(seen, "calls", broken)
        with log.open(encoding="utf-8", errors="replace") as lines:
            found = memory_calls.read(lines, run.reading.wall_s)
    except NoCounter as error:
        return _without(seen, "calls", str(error))
    except FileNotFoundError:
        return _without(seen, "calls", "strace wrote nothing")
    finally:
        log.unlink(missing_ok=True)
    settings = seen.settings.model_copy(
        update={
            "huge_pages_off": seen.settings.huge_pages_off or found.huge_pages_off,
            "locked": found.locked,
        }
    )
    return seen.model_copy(update={"calls": found, "settings": settings})


def _sites(seen: Observations, patient: Patient) -> Observations:
    """Stacks take milliseconds each: a run of its own, broken off after some seconds, where there is enough to see."""
    if seen.calls is None:
        return _without(seen, "call sites", "its calls were not seen")
    named = [each.name for each in seen.calls.by_kind if each.name != "futex"]
    if sum(each.calls for each in seen.calls.by_kind if each.name in named) < WORTH_STACKS:
        return seen
    log = patient.scratch / "sites.strace"
    try:
        _traced(replace(patient, timeout_s=STACKS_S), ["-ttt", *call_sites.STACKS], log, ",".join(named))
        text = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return _without(seen, "call sites", "this strace takes no stacks (-k)")
    finally:
        log.unlink(missing_ok=True)
    found, totals = call_sites.read(text, named), call_sites.totals(text, named)
    if not found:
        return _without(seen, "call sites", "no stack named a function of the program's")
    by_kind = [
        each.model_copy(update={"sites": found.get(each.name, []), "with_stack": totals[each.name]})
        for each in seen.calls.by_kind
    ]
    return seen.model_copy(update={"calls": seen.calls.model_copy(update={"by_kind": by_kind})})


def _traced(patient: Patient, options: Sequence[str], log: Path, names: str) -> Execution:
    """A run under strace. Raises NoCounter where there is none."""
    return _run(patient, traced(patient.workload, [*options, "-o", str(log)], names))


PARTS: Final[Mapping[str, Callable[[Observations, Patient], Observations]]] = {
    "platform": _platform,
    "prices": _prices,
    "cost": _cost,
    "course": _course,
    "heap": _heap,
    "calls": _calls,
    "sites": _sites,
}
"""What is observed, in the order in which it is."""

TITLES: Final[Mapping[str, str]] = {
    "platform": "the rules of this machine",
    "prices": "what page faults and calls cost here",
    "cost": "its time and memory, unwatched",
    "course": "its memory over time, from outside",
    "heap": "what it asks of malloc",
    "calls": "its calls about memory, under a tracer",
    "sites": "where those calls come from",
}


NOT_OF_SERVERS: Final = ("calls", "sites")
"""What a server is not looked at for: its load would wait for the tracer."""

SAID_FROM_S: Final = 5.0
"""From so long on it is said how long a run takes."""


def how_long(part: str, seen: Observations) -> str:
    """How long a part of a long program takes at least, as it is said behind its title; empty where that is short."""
    if seen.cost is None or seen.cost.wall_s < SAID_FROM_S or part not in ("course", "heap", "calls"):
        return ""
    return f", {seen.cost.wall_s:.0f} s or more"


def take(part: str, seen: Observations, patient: Patient) -> Observations:
    """Take one part; what cannot be taken is named in ``unseen``.

    Raises:
        LauncherBroken: the lab's own parts do not work.
        KeyboardInterrupt: as it comes; the program is ended first.
    """
    found = PARTS[part](seen, patient)
    return found.model_copy(update={"done": [*found.done, part]})


def _run(patient: Patient, workload: Workload, **options: object) -> Execution:
    """A run that is no measurement."""
    allowed = permissions()
    method: CensusMethod = "perf" if allowed.perf else "none"
    return execute(
        workload.model_copy(update={"rest_s": None}),
        patient.configuration,
        patient.timeout_s,
        patient.scratch,
        method,
        None,
        **options,  # type: ignore[arg-type]
    )


def _broken(run: Execution, workload: Workload) -> str | None:
    """Why a run has not done its work; None where it has, proved or not. A server is ended by who drives it."""
    reading = run.reading
    if run.status not in ("ok", "invalid"):
        return run.reason or run.status
    if workload.service is not None:
        return None
    ended_well = reading.state == "exited" and (reading.exit_code or 0) in (0, *workload.ignore_status)
    return None if ended_well else run.reason or reading.state


WATCHED_MOST: Final = 100.0
"""A program that is watched takes so many times as long at most..."""

WATCHED_LEAST_S: Final = 60.0
"""... or so many seconds, before it counts as hanging."""


def _limited(patient: Patient, seen: Observations) -> Patient:
    """The patient with a limit for a run in which the lab's own parts are inside of the program."""
    if patient.timeout_s is not None or seen.cost is None:
        return patient
    return replace(patient, timeout_s=max(WATCHED_LEAST_S, WATCHED_MOST * seen.cost.wall_s))


def _rehearsed(patient: Patient) -> Rehearsal | None:
    if permissions().perf:
        return None
    return rehearse(patient.workload, patient.configuration, timeout_s=patient.timeout_s, scratch=patient.scratch)


def _without(seen: Observations, part: str, why: str) -> Observations:
    return seen.model_copy(update={"unseen": {**seen.unseen, part: why}})


def _cpu_s(seen: Observations) -> float:
    return 0.0 if seen.cost is None else seen.cost.user_s + seen.cost.sys_s


def _with_shares(seen: Observations, kept: Kept | None) -> list[OwnHeap]:
    """The heaps of its own with malloc's share of the memory that is no file's."""
    if seen.heap is None or kept is None or kept.anonymous_kib <= 0 or not near_peak(kept, seen):
        return seen.own_heaps
    part = min(1.0, seen.heap.peak_live_kib / kept.anonymous_kib)
    return [heap.model_copy(update={"share": part}) for heap in seen.own_heaps]
