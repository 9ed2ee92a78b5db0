"""``freestone doctor``: what a program's memory suffers from, what helps, and whether it really does."""

from __future__ import annotations

import contextlib
import json as json_format
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from freestone.allocators import SYSTEM, AllocatorError, configuration_for, elf, find
from freestone.analysis import same_program
from freestone.analysis.headline import A_SERVER
from freestone.analysis.pareto import Goal
from freestone.commands import (
    doctor_explain,
    doctor_page,
    doctor_process,
    doctor_trials,
    measurement,
    program,
    progress,
    terminal,
)
from freestone.commands.acceptance import STRICT, Acceptance
from freestone.commands.durations import Budget, Look
from freestone.commands.options import Results, Timeout
from freestone.commands.service_options import NO_SERVICE, ServiceOptions
from freestone.commands.status import ExitStatus, Stop
from freestone.commands.terminal import say
from freestone.doctor import chart as charts
from freestone.doctor import conditions, in_code, observe, symptoms, words
from freestone.doctor.as_json import as_json as as_json_of
from freestone.doctor.chart import Chart
from freestone.doctor.conditions import Conditions, no_huge_pages
from freestone.doctor.observations import Observations
from freestone.doctor.observe import Patient
from freestone.doctor.platform import describe
from freestone.doctor.remedies import Remedy
from freestone.experiments.interruption import Interruption, TrialBrokenOff
from freestone.experiments.plan import Extent, PlanError
from freestone.native import NativePartMissing
from freestone.records import store
from freestone.records.schema import Configuration, Workload
from freestone.records.store import StoreError
from freestone.trials import LauncherBroken
from freestone.trials.environment import in_force
from freestone.trials.named_files import NamedFiles

BUDGET_S = 60.0


def doctor(
    *command: Annotated[str, Parameter(help="The program and its arguments, after --.")],
    time_budget: Annotated[
        Budget,
        Parameter(
            help="Seconds, or as in 2m, for trying remedies; what is observed before takes some runs more. Default: 60."
        ),
    ] = None,
    goal: Annotated[Goal | None, Parameter(help="What the cure is for. Default: balanced.")] = None,
    observe_only: Annotated[bool, Parameter(negative="", help="Say what is wrong, and try nothing.")] = False,
    apply: Annotated[bool, Parameter(negative="", help="Then run the program with what helped.")] = False,
    allow_system_settings: Annotated[
        bool,
        Parameter(
            negative="",
            help="As root, also try the kernel's folio sizes: switches of the whole machine, put back behind each run.",
        ),
    ] = False,
    pid: Annotated[int | None, Parameter(help="A running process: it is looked at, and nothing is tried.")] = None,
    seconds: Annotated[Look, Parameter(help="For how long --pid looks. Default: 10.")] = None,
    allow_tracing: Annotated[
        bool, Parameter(negative="", help="With --pid, also look by strace, which slows the process meanwhile.")
    ] = False,
    resume: Annotated[
        Path | None, Parameter(help="A folder of an earlier diagnosis: go on with it, or show it where it is complete.")
    ] = None,
    explain: Annotated[
        str | None, Parameter(help="A symptom, or all: print what it is and what helps; run nothing.")
    ] = None,
    json: Annotated[bool, Parameter(negative="", help="Print what was seen, found and tried as JSON.")] = False,
    env: Annotated[
        list[str] | None, Parameter(negative="", help="NAME=VALUE for the program's environment. May be given again.")
    ] = None,
    timeout: Timeout = None,
    results: Results = Path("results"),
    service: ServiceOptions = NO_SERVICE,
    acceptance: Acceptance = STRICT,
) -> int:
    """Say what a program's memory suffers from, try what may help, and keep what really does.

    It looks at the program in several runs, each for what it disturbs least, names what it finds with its price,
    and compares remedies in interleaved rounds with the untouched program. Only what is really better is prescribed.

    Examples:

        freestone doctor -- ./my-program its arguments
        freestone doctor --goal memory -- ./my-program
        freestone doctor --ready 'redis-cli ping' --load 'redis-benchmark -t set' -- redis-server
        freestone doctor --pid 4711 --seconds 30
        freestone doctor --resume results/20261120T131500Z-doctor-my-program
        freestone doctor --explain trim-churn

    Exit status: 0 a diagnosis, with or without a cure, 2 wrong use, 3 nothing could be observed, 5 results could not be
    written, 126 or 127 the program cannot be executed or found, 130 interrupted.
    """
    given: dict[str, object] = {
        "--time-budget": time_budget,
        "--observe-only": observe_only or None,
        "--allow-system-settings": allow_system_settings or None,
        "--env": env,
        "--timeout": timeout,
        **service.given(),
        **acceptance.given(),
    }
    of_process = {"--seconds": seconds, "--allow-tracing": allow_tracing or None}
    others = {"a program": command or None, **given, "--goal": goal, "--apply": apply or None, "--resume": resume}
    try:
        if explain is not None:
            _refuse("--explain runs nothing", {**others, "--pid": pid, **of_process})
            return doctor_explain.explain(explain, as_json=json)
        if pid is not None:
            _refuse("--pid looks at what runs", others)
            return doctor_process.look(pid, seconds, allow_tracing, results, as_json=json)
        _refuse("these belong to --pid", of_process)
        if resume is not None:
            _refuse(f"--resume goes on with the settings of {resume}", {"the program": command or None, **given})
            case = _taken_up(resume)
        else:
            extent = Extent(time_budget_s=BUDGET_S if time_budget is None else time_budget, timeout_s=timeout)
            executable, plain = program.found(command, env or [], verb="doctor")
            workload = service.applied(acceptance.applied(plain))
            case = _begun(executable, workload, extent, results, observe_only, allow_system_settings, goal)
    except (AllocatorError, PlanError) as error:
        raise Stop(str(error), ExitStatus.USAGE) from error
    except StoreError as error:
        raise Stop(str(error), ExitStatus.STORE) from error
    return _diagnosed(case, goal or case.chart.goal, apply=apply, as_json=json)


@dataclass(frozen=True)
class _Case:
    """One diagnosis: where it is kept, what it is made of, and the program as it was found."""

    folder: Path
    chart: Chart
    executable: Path

    @property
    def workload(self) -> Workload:
        (workload,) = self.chart.experiment.workloads
        return workload

    @property
    def untouched(self) -> Configuration:
        return self.chart.experiment.configurations[0]

    @property
    def go_on(self) -> str:
        """How it goes on after an interruption."""
        return f"go on with: {program.tool_as_typed()} doctor --resume {self.folder}"


def _refuse(what: str, given: Mapping[str, object]) -> None:
    """Raises PlanError where anything was given."""
    named = [option for option, value in given.items() if value is not None]
    if named:
        raise PlanError(f"{what}; leave out {', '.join(named)}")


def _begun(
    executable: Path,
    workload: Workload,
    extent: Extent,
    results: Path,
    observe_only: bool,
    allow_system_settings: bool,
    goal: Goal | None,
) -> _Case:
    (system,) = find([SYSTEM])
    experiment = measurement.planned(workload.name, [workload], [SYSTEM], None, extent)
    chart = Chart(
        experiment=experiment.model_copy(update={"configurations": [configuration_for(system)]}),
        goal=goal or "balanced",
        allow_system_settings=allow_system_settings,
        observe_only=observe_only,
        files=_files(workload),
    )
    folder = store.create_folder(results, f"doctor-{workload.name}", datetime.fromisoformat(experiment.created_at))
    charts.write(folder, chart)
    if allow_system_settings and (why := doctor_trials.refusal(chart)) is not None:
        say(f"--allow-system-settings: {why}; folios are not tried")
    return _Case(folder, chart, executable)


def _taken_up(folder: Path) -> _Case:
    """An earlier diagnosis, fit to go on here and now."""
    chart = charts.read(folder)
    measurement.require_same(folder, chart.experiment)
    (workload,) = chart.experiment.workloads
    changed = same_program.what_changed(chart.files, _files(workload))
    if changed:
        raise PlanError(f"cannot resume {folder}: {changed} is not what it was when it was begun")
    executable = program.require(
        workload.command, {**os.environ, **workload.environment}, workload.directory or ".", verb="doctor"
    )
    return _Case(folder, chart, executable)


def _files(workload: Workload) -> dict[str, str]:
    return dict(NamedFiles().contents(workload, in_force(workload, None, os.environ)))


def _diagnosed(case: _Case, goal: Goal, *, apply: bool, as_json: bool) -> int:
    for line in conditions.left_over():
        say(line)
    for line in measurement.about_environment(case.chart.experiment):
        say(line)
    try:
        with store.held(case.folder):
            seen = _observed(case)
    except StoreError as error:
        raise Stop(str(error), ExitStatus.STORE) from error
    found = symptoms.name(seen)
    width = terminal.width()
    unobserved = seen.cost is None and not seen.own_heaps
    if not as_json and not unobserved:
        print(words.findings(found, seen, width=width))
        doctor_page.draw(seen)
        sys.stdout.flush()
    if unobserved:
        say(f"nothing could be observed: {seen.unseen.get('cost', 'the runs were broken off')}")
        return ExitStatus.NOTHING_MEASURED
    weighed, left_out = None, list[tuple[Remedy, str]]()
    if seen.cost is not None and not case.chart.observe_only:
        weighed, left_out = doctor_trials.tried(case.folder, case.chart, found, seen, goal, as_json=as_json)
    if as_json:
        print(json_format.dumps(as_json_of(seen, found, weighed, left_out), indent=2))
    else:
        print(words.advice(in_code.advice(found, seen), width=width), end="")
        print(words.next_steps(found, observed_only=case.chart.observe_only), end="")
        print(f"Records: {case.folder}")
    try:
        doctor_page.write(case.folder, goal, quiet=as_json)
    except StoreError as error:
        raise Stop(str(error), ExitStatus.STORE) from error
    if apply and weighed is not None and weighed.best is not None:
        measured = store.read_experiment(case.folder)
        best = next(each for each in measured.configurations if each.name == weighed.best.configuration)
        return _applied(best, case.workload)
    return ExitStatus.FINE


def _observed(case: _Case) -> Observations:
    """Take every part that was not taken yet; what was taken is written at once, so that nothing is lost.

    Raises:
        StoreError: it cannot be written, or what is there cannot be read.
        Stop: it was interrupted, or the lab's own parts do not work.
    """
    libc = elf.inspect(case.executable).libc
    workload = case.workload
    blank = Observations(command=workload.command, service=workload.service is not None, platform=describe(libc))
    seen = charts.read_seen(case.folder) or blank
    with (
        tempfile.TemporaryDirectory(prefix=f"freestone-{os.getpid()}-") as scratch,
        Interruption() as stop,
    ):
        Path(scratch).chmod(0o711)
        limit_s = case.chart.experiment.timeout_s
        patient = Patient(workload, case.untouched, libc, os.environ, limit_s, Path(scratch))
        for part in [each for each in observe.PARTS if each not in seen.done]:
            if seen.cost is None and "cost" in seen.done:
                break
            if not (workload.service is not None and part in observe.NOT_OF_SERVERS):
                say(f"looking at {observe.TITLES[part]}{observe.how_long(part, seen)}")
            try:
                with stop.breakable(), _hint_where_it_does_not_end(workload, part):
                    seen = observe.take(part, seen, patient)
            except TrialBrokenOff as error:
                status = 128 + stop.signal if stop.signal else ExitStatus.INTERRUPTED
                raise Stop(f"interrupted; what was seen is kept in {case.folder}, {case.go_on}", status) from error
            except (LauncherBroken, NativePartMissing) as error:
                raise Stop(str(error), ExitStatus.NOTHING_MEASURED) from error
            charts.write_seen(case.folder, seen)
    return seen


@contextlib.contextmanager
def _hint_where_it_does_not_end(workload: Workload, part: str) -> Iterator[None]:
    """Say of a first run that does not end what it may be."""
    hint = threading.Timer(progress.LONG_REHEARSAL_S, say, [f"still running: {A_SERVER}"])
    hint.daemon = True
    if part == "cost" and workload.service is None:
        hint.start()
    try:
        yield
    finally:
        hint.cancel()


def _applied(best: Configuration, workload: Workload) -> int:
    """Run the program with what helped; switches of the kernel's are put back when it ends."""
    from freestone.commands.run import run
    from freestone.experiments.engines.command import lab
    from freestone.reports import deployment

    allocator = deployment.as_typed(best)
    # As it was measured: in another environment or folder it might do its work on other data.
    os.environ.update(workload.environment)
    if workload.directory is not None:
        os.chdir(workload.directory)
    if not best.needs_conditions:
        return run(*workload.command, allocator=allocator)
    if not best.kernel:
        with no_huge_pages():
            return run(*workload.command, allocator=allocator)
    words_of_run = lab("run", "-a", allocator, "--", *workload.command)
    with Conditions() as made, made.around(best):
        return subprocess.run(words_of_run, check=False).returncode
