"""``freestone doctor``: what a program's memory suffers from, what helps, and whether it really does."""

from __future__ import annotations

import json as json_format
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from freestone.allocators import SYSTEM, AllocatorError, configuration_for, discover, elf, find, notation
from freestone.commands import measurement, program, terminal
from freestone.commands.options import Results, Timeout
from freestone.commands.service_options import NO_SERVICE, ServiceOptions
from freestone.commands.status import ExitStatus, Stop
from freestone.doctor import observe, remedies, symptoms, verdict, words
from freestone.doctor.observations import Observations
from freestone.doctor.observe import Patient
from freestone.doctor.platform import describe
from freestone.doctor.remedies import Remedy
from freestone.doctor.symptoms import Finding
from freestone.doctor.verdict import Goal
from freestone.experiments.interruption import Interruption, TrialBrokenOff
from freestone.experiments.plan import Extent, PlanError
from freestone.native import NativePartMissing
from freestone.records import store
from freestone.records.schema import Configuration, Experiment, Summary, TrialRecord, Workload
from freestone.records.store import StoreError
from freestone.records.whole import write_whole
from freestone.reports import deployment, table
from freestone.trials import LauncherBroken

OBSERVATIONS = "observations.json"
"""What was seen, in the folder of the results; it is there as soon as anything was."""

MOST_REMEDIES = 8
LEAST_ROUNDS = 6
"""Fewer say little: rather fewer remedies are tried."""


def doctor(
    *command: Annotated[str, Parameter(help="The program and its arguments, after --.")],
    time_budget: Annotated[
        float, Parameter(help="Seconds for trying remedies. What is observed before takes some runs more.")
    ] = 60.0,
    goal: Annotated[Goal, Parameter(help="What the cure is for.")] = "balanced",
    observe_only: Annotated[bool, Parameter(negative="", help="Say what is wrong, and try nothing.")] = False,
    apply: Annotated[bool, Parameter(negative="", help="Then run the program with what helped.")] = False,
    json: Annotated[bool, Parameter(negative="", help="Print what was seen, found and tried as JSON.")] = False,
    env: Annotated[
        list[str] | None, Parameter(negative="", help="NAME=VALUE for the program's environment. May be given again.")
    ] = None,
    timeout: Timeout = None,
    results: Results = Path("results"),
    service: ServiceOptions = NO_SERVICE,
) -> int:
    """Say what a program's memory suffers from, try what may help, and keep what really does.

    It looks at the program in several runs, each for what it disturbs least, names what it finds with its price,
    and compares remedies in interleaved rounds with the untouched program. Only what is really better is prescribed.

    Examples:

        freestone doctor -- ./my-program its arguments
        freestone doctor --goal memory -- ./my-program
        freestone doctor --ready 'redis-cli ping' --load 'redis-benchmark -t set' -- redis-server

    Exit status: 0 a diagnosis, with or without a cure, 2 wrong use, 3 nothing could be observed, 5 results could not be
    written, 126 or 127 the program cannot be executed or found, 130 interrupted.
    """
    try:
        extent = Extent(time_budget_s=time_budget, timeout_s=timeout)
        settings = program.settings(env or [])
        executable = program.require(command, {**os.environ, **settings}, verb="doctor")
        workload = service.applied(
            Workload(name=executable.name, command=list(command), environment=settings, directory=os.getcwd())
        )
        (system,) = find([SYSTEM])
        untouched = configuration_for(system)
        experiment = measurement.planned(workload.name, [workload], [SYSTEM], None, extent)
        folder = store.create_folder(results, f"doctor-{workload.name}", datetime.fromisoformat(experiment.created_at))
    except (AllocatorError, PlanError) as error:
        raise Stop(str(error), ExitStatus.USAGE) from error
    except StoreError as error:
        raise Stop(str(error), ExitStatus.STORE) from error
    seen = _observed(folder, workload, untouched, timeout, libc=elf.inspect(executable).libc)
    found = symptoms.name(seen)
    width = terminal.width()
    if not json:
        print(words.findings(found, seen, width=width))
        sys.stdout.flush()
    if seen.cost is None:
        _say(f"nothing could be observed: {seen.unseen.get('cost', 'the runs were broken off')}")
        return ExitStatus.NOTHING_MEASURED
    weighed = None
    if not observe_only:
        weighed = _tried(folder, experiment, found, seen, goal, as_json=json)
    if json:
        print(json_format.dumps(_as_json(seen, found, weighed), indent=2))
    else:
        print(words.advice(remedies.advice(found), width=width), end="")
        print(f"Records: {folder}")
    if apply and weighed is not None and weighed.best is not None:
        return _applied(weighed.best.configuration, workload)
    return ExitStatus.FINE


def _observed(
    folder: Path, workload: Workload, untouched: Configuration, timeout_s: float | None, *, libc: str | None
) -> Observations:
    """Take every part; what was taken is written at once, so that nothing is lost."""
    seen = Observations(command=workload.command, service=workload.service is not None, platform=describe(libc))
    with (
        tempfile.TemporaryDirectory(prefix=f"freestone-{os.getpid()}-") as scratch,
        Interruption() as stop,
    ):
        Path(scratch).chmod(0o711)
        patient = Patient(workload, untouched, libc, os.environ, timeout_s, Path(scratch))
        for part in observe.PARTS:
            if seen.cost is None and "cost" in seen.done:
                break
            _say(f"looking at {observe.TITLES[part]}")
            try:
                with stop.breakable():
                    seen = observe.take(part, seen, patient)
            except TrialBrokenOff as error:
                kept = f"what was seen is kept in {folder}"
                raise Stop(f"interrupted; {kept}", ExitStatus.INTERRUPTED) from error
            except (LauncherBroken, NativePartMissing) as error:
                raise Stop(str(error), ExitStatus.NOTHING_MEASURED) from error
            write_whole(folder / OBSERVATIONS, seen.model_dump_json(indent=2) + "\n")
    return seen


def _tried(
    folder: Path,
    experiment: Experiment,
    found: Sequence[Finding],
    seen: Observations,
    goal: Goal,
    *,
    as_json: bool,
) -> verdict.Verdict | None:
    """Compare remedies with the untouched program, and show what helped; None where there is none to try."""
    chosen = _configurations(remedies.candidates(found, seen, _most(experiment, seen)))
    if not chosen:
        if not as_json:
            print("There is nothing to try: no setting and no allocator is known to help.\n")
        return None
    tried = experiment.model_copy(update={"configurations": [*experiment.configurations, *(one for one, _ in chosen)]})
    by_name = {one.name: remedy for one, remedy in chosen}
    (workload,) = tried.workloads
    held: list[verdict.Verdict] = []

    def show(measured: Experiment, records: Sequence[TrialRecord], summary: Summary) -> None:
        judged = verdict.judge(summary, workload, by_name, goal, _memory(found, workload))
        held.append(judged)
        if as_json:
            return
        width, colour, plain = terminal.width(), terminal.has_colour(sys.stdout), terminal.is_ascii(sys.stdout)
        print(table.render(summary, width=width, colour=colour, ascii_only=plain))
        print(words.verdict(judged, summary.baseline, width=width))
        if judged.best is not None:
            best = next(each for each in measured.configurations if each.name == judged.best.configuration)
            lines = [*deployment.lines(workload, best), *deployment.more_lines(workload, best)]
            print("\n".join(["To use it:", *lines, ""]))

    try:
        store.write_experiment(folder, tried)
    except StoreError as error:
        raise Stop(str(error), ExitStatus.STORE) from error
    status = measurement.measure(folder, tried, verb="compare", show=show, report=None)
    if status in (ExitStatus.STORE, ExitStatus.INTERRUPTED):
        raise Stop("remedies were not all tried", ExitStatus(status))
    return held[-1] if held else None


def _most(experiment: Experiment, seen: Observations) -> int:
    """How many remedies can be tried in enough rounds, each of which has the untouched program twice."""
    if experiment.time_budget_s is None or seen.cost is None:
        return MOST_REMEDIES
    fitting = int(experiment.time_budget_s / (LEAST_ROUNDS * max(0.05, seen.cost.wall_s))) - 2
    return max(2, min(MOST_REMEDIES, fitting))


def _configurations(chosen: Sequence[Remedy]) -> list[tuple[Configuration, Remedy]]:
    """Those that are here, each with its remedy."""
    here = {each.name: each for each in discover() if each.available}
    found = []
    for each in chosen:
        if each.allocator in here:
            settings: Mapping[str, str] = dict(each.settings)
            name = notation.write(each.allocator, settings)
            found.append((configuration_for(here[each.allocator], name=name, environment=settings), each))
    return found


def _memory(found: Sequence[Finding], workload: Workload) -> str:
    """The metric that is the program's memory: what is left at the end where that is what it suffers from."""
    if workload.service is not None:
        return "figure:rss_kib_loaded"
    kept = {"retention-after-peak", "pinned-top-fragmentation", "slab-fragmentation", "thread-cache-bloat"}
    return "end_rss_kib" if any(each.symptom in kept for each in found) else "peak_rss_kib"


def _applied(configuration: str, workload: Workload) -> int:
    from freestone.commands.run import run

    return run(*workload.command, allocator=configuration)


def _as_json(seen: Observations, found: Sequence[Finding], weighed: verdict.Verdict | None) -> dict[str, object]:
    tried = [] if weighed is None else weighed.tried
    return {
        "observations": json_format.loads(seen.model_dump_json()),
        "findings": [
            {"symptom": each.symptom, "evidence": list(each.evidence), "time": each.time, "memory": each.memory}
            for each in found
        ],
        "advice": remedies.advice(found),
        "goal": None if weighed is None else weighed.goal,
        "best": None if weighed is None or weighed.best is None else weighed.best.configuration,
        "front": [] if weighed is None else [each.configuration for each in weighed.front],
        "tried": [
            {
                "configuration": each.configuration,
                "why": each.remedy.why if each.remedy is not None else None,
                "discarded": each.discarded,
                **{
                    name: None if ratio is None else json_format.loads(ratio.model_dump_json())
                    for name, ratio in (("time", each.time), ("memory", each.memory), ("faults", each.faults))
                },
            }
            for each in tried
        ],
    }


def _say(line: str) -> None:
    print(f"freestone: {line}", file=sys.stderr)
