"""``freestone compare``: one program under every allocator, round by round."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from freestone.allocators import AllocatorError
from freestone.analysis.statistics import paired_ratio
from freestone.commands import measurement, program, terminal
from freestone.commands.acceptance import STRICT, Acceptance
from freestone.commands.options import Allocators, Results, Resume, Seed, TimeBudget, Timeout, Whole
from freestone.commands.service_options import NO_SERVICE, ServiceOptions
from freestone.commands.status import ExitStatus, Stop
from freestone.experiments.plan import Extent, PlanError
from freestone.records import store
from freestone.records.schema import Experiment, Summary, Workload
from freestone.records.store import StoreError
from freestone.reports import deployment, extras, table
from freestone.suites.expansion import IDLE_MOST_S


def compare(
    *command: Annotated[str, Parameter(help="The program and its arguments, after --.")],
    allocators: Allocators = None,
    rounds: Annotated[
        Whole,
        Parameter(
            name=["--rounds", "-n"],
            help="How often each allocator is measured. Default: 10, or as many as fit --time-budget.",
        ),
    ] = None,
    time_budget: TimeBudget = None,
    baseline: Annotated[
        str | None, Parameter(help="The allocator the others are held against. Default: the system's.")
    ] = None,
    idle: Annotated[
        Whole,
        Parameter(help="Keep each process so many seconds at its end: RSS, PSS, huge pages, lazily freed memory then."),
    ] = None,
    idle_rounds: Annotated[Whole, Parameter(help="In the first so many rounds only. Default: in all.")] = None,
    timeout: Timeout = None,
    name: Annotated[str | None, Parameter(help="What to call the experiment. Default: the program's name.")] = None,
    env: Annotated[
        list[str] | None,
        Parameter(
            negative="", help="NAME=VALUE for the program's environment, or NAME as it is here. May be given again."
        ),
    ] = None,
    keep_env: Annotated[
        bool,
        Parameter(
            negative="", help="Keep variables that steer an allocator or the loader (MALLOC_*, LD_*, ...) as they are."
        ),
    ] = False,
    seed: Seed = None,
    results: Results = Path("results"),
    resume: Resume = None,
    json: Annotated[bool, Parameter(negative="", help="Print the summary as JSON instead of a table.")] = False,
    acceptance: Acceptance = STRICT,
    service: ServiceOptions = NO_SERVICE,
    report: Annotated[bool, Parameter(name="--report", negative="--no-report", help="Write the HTML report.")] = True,
) -> int:
    """Run a program under every allocator and say which is best for what.

    Every round runs every allocator once, in random order, and the baseline twice: how it differs from itself is the
    noise. Each run is proved: an allocator that did not serve every process of the program has an INVALID cell
    and no number. Records, summary and report are in a new folder below results/.

    Examples:

        freestone compare -- python3 program.py
        freestone compare -a freestone,jemalloc -n 20 -- ./server --selftest
        freestone compare --time-budget 60 --env PYTHONMALLOC=malloc -- python3 a.py
        freestone compare -a ./libmymalloc.so,glibc -- ls -lR /usr
        freestone compare --ready 'redis-cli ping' --load 'redis-benchmark -n 500000 -t set' -- redis-server
        freestone compare --resume results/20261120T131500Z-program

    Exit status: 0 all measured, 2 wrong use, 3 nothing could be measured, 4 some allocators failed or are INVALID,
    5 results could not be written, 126 or 127 the program cannot be executed or found, 130 interrupted.
    """
    try:
        if resume is not None:
            given = {
                "-a": allocators,
                "-n": rounds,
                "--time-budget": time_budget,
                "--baseline": baseline,
                "--timeout": timeout,
                "--idle": idle,
                "--idle-rounds": idle_rounds,
                "--name": name,
                "--env": env,
                "--keep-env": keep_env or None,
                "--seed": seed,
                **acceptance.given(),
                **service.given(),
            }
            folder, experiment = (
                resume,
                _resumed(resume, command, [option for option, value in given.items() if value is not None]),
            )
        else:
            extent = Extent(rounds=rounds, time_budget_s=time_budget, timeout_s=timeout, seed=seed)
            workload = service.applied(acceptance.applied(_workload(command, name, env or [], keep_env)))
            workload = _kept(workload, idle, idle_rounds)
            experiment = measurement.planned(workload.name, [workload], allocators, baseline, extent)
            folder = measurement.begun(results, workload.name, experiment)
    except (AllocatorError, PlanError) as error:
        raise Stop(str(error), ExitStatus.USAGE) from error
    except StoreError as error:
        raise Stop(str(error), ExitStatus.STORE) from error
    return measurement.measure(
        folder,
        experiment,
        verb="compare",
        show=lambda _, __, summary: _show(experiment, summary, folder, as_json=json),
        report=(lambda: _report(folder, as_json=json)) if report else None,
    )


def _workload(command: Sequence[str], name: str | None, env: Sequence[str], keep_env: bool) -> Workload:
    environment = program.settings(env)
    executable = program.require(command, {**os.environ, **environment})
    return Workload(
        name=name or executable.name,
        command=list(command),
        environment=environment,
        keep_environment=keep_env,
        directory=os.getcwd(),
    )


def _brings_malloc(workload: Workload) -> bool:
    environment = {**os.environ, **workload.environment}
    return program.brings_malloc(program.require(workload.command, environment, workload.directory or "."))


def _kept(workload: Workload, idle_s: int | None, rounds: int | None) -> Workload:
    """The workload with its processes kept at their end for so long.

    Raises:
        PlanError: no such number of seconds or rounds.
    """
    if idle_s is not None and not 1 <= idle_s <= IDLE_MOST_S:
        raise PlanError(f"--idle is a whole number of seconds from 1 to {IDLE_MOST_S}, not {idle_s}")
    if rounds is not None and (idle_s is None or rounds < 1):
        raise PlanError(f"--idle-rounds is a number of rounds from 1 on, beside --idle, not {rounds}")
    if idle_s is not None and workload.service is not None:
        raise PlanError("--idle is for programs: a server's memory after its load is taken without it")
    return workload.model_copy(update={"rest_s": idle_s, "idle_rounds": rounds})


def _resumed(folder: Path, command: Sequence[str], given: Sequence[str]) -> Experiment:
    experiment = measurement.resumed(folder, given)
    measured = experiment.workloads[0].command
    if command and list(command) != measured:
        raise PlanError(f"cannot resume {folder}: it measured another command ({' '.join(measured)})")
    return experiment


def _show(experiment: Experiment, summary: Summary, folder: Path, *, as_json: bool) -> None:
    if as_json:
        print(summary.model_dump_json(indent=2))
        return
    width, colour, plain = terminal.width(), terminal.has_colour(sys.stdout), terminal.is_ascii(sys.stdout)
    print(table.render(summary, width=width, colour=colour, ascii_only=plain))
    use = deployment.told(experiment, summary, brings_malloc=_brings_malloc(experiment.workloads[0]))
    if use:
        # What is to be copied stays in one line, however narrow the terminal is.
        print("\n".join([*textwrap.wrap(use[0], width, break_long_words=False), *use[1:], ""]))
    print(f"Records: {folder}")


def _report(folder: Path, *, as_json: bool) -> None:
    lacking = extras.missing()
    if lacking is not None:
        print(f"freestone: no {store.REPORT_FILE}: {lacking}", file=sys.stderr)
        return
    from freestone.reports import html  # late: the figures' libraries are large

    try:
        written = html.write([folder], folder / store.REPORT_FILE, paired_ratio)
    except html.ReportError as error:
        raise StoreError(str(error)) from error
    if not as_json:
        print(f"Report:  {written}")
