"""``freestone compare``: one program under every allocator, round by round."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from freestone import machine
from freestone.allocators import SYSTEM, AllocatorError, configuration_for, discover, find
from freestone.commands import program, terminal
from freestone.commands.progress import Progress
from freestone.commands.status import ExitStatus, Stop
from freestone.experiments import Interruption, Outcome, mismatch, run, summarise
from freestone.experiments.plan import Extent, PlanError, new_experiment
from freestone.native import NativePartMissing
from freestone.records import store
from freestone.records.parquet import write_parquet
from freestone.records.schema import Allocator, Configuration, Experiment, Summary, Workload
from freestone.records.store import StoreError
from freestone.reports import table
from freestone.trials import LauncherBroken


def compare(
    *command: Annotated[str, Parameter(help="The program and its arguments, after --.")],
    allocators: Annotated[
        list[str] | None,
        Parameter(
            name=["--allocators", "-a"],
            negative="",
            help="Names or library paths, with commas between. Default: all that are here.",
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        Parameter(
            name=["--rounds", "-n"],
            help="How often each allocator is measured. Default: 10, or as many as fit --time-budget.",
        ),
    ] = None,
    time_budget: Annotated[
        float | None, Parameter(help="Seconds. No round is begun that would not fit; the first always is.")
    ] = None,
    baseline: Annotated[
        str | None, Parameter(help="The allocator the others are held against. Default: the system's.")
    ] = None,
    timeout: Annotated[
        float | None, Parameter(help="Seconds after which a run is ended and counts as timed out.")
    ] = None,
    name: Annotated[str | None, Parameter(help="What to call the experiment. Default: the program's name.")] = None,
    env: Annotated[
        list[str] | None, Parameter(negative="", help="NAME=VALUE for the program's environment. May be given again.")
    ] = None,
    seed: Annotated[int | None, Parameter(help="Of the random order of runs. Default: drawn, and recorded.")] = None,
    results: Annotated[Path, Parameter(help="The folder that holds all results.")] = Path("results"),
    resume: Annotated[
        Path | None, Parameter(help="A results folder: measure what is missing there, with the settings it has.")
    ] = None,
    json: Annotated[bool, Parameter(negative="", help="Print the summary as JSON instead of a table.")] = False,
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
                "--name": name,
                "--env": env,
                "--seed": seed,
            }
            folder, experiment = _resumed(
                resume, command, [option for option, value in given.items() if value is not None]
            )
        else:
            extent = Extent(rounds=rounds, time_budget_s=time_budget, timeout_s=timeout, seed=seed)
            folder, experiment = _begun(command, allocators, baseline, name, env or [], extent, results)
    except (AllocatorError, PlanError) as error:
        raise Stop(str(error), ExitStatus.USAGE) from error
    except StoreError as error:
        raise Stop(str(error), ExitStatus.STORE) from error
    return _measure(folder, experiment, as_json=json, with_report=report)


def _begun(
    command: Sequence[str],
    names: list[str] | None,
    baseline: str | None,
    name: str | None,
    env: Sequence[str],
    extent: Extent,
    results: Path,
) -> tuple[Path, Experiment]:
    environment = program.settings(env)
    executable = program.require(command, {**os.environ, **environment})
    compared, held_against = _chosen(names, baseline)
    try:
        "\0".join([*command, *environment.values(), os.getcwd()]).encode()
    except UnicodeEncodeError as error:
        raise PlanError("a program, argument or folder whose name is not UTF-8 cannot be recorded") from error
    workload = Workload(
        name=name or executable.name, command=list(command), environment=environment, directory=os.getcwd()
    )
    now = datetime.now(UTC)
    experiment = new_experiment(
        workload=workload,
        configurations=[configuration_for(allocator) for allocator in compared],
        baseline=held_against,
        extent=extent,
        machine=machine.describe(),
        command_line=["freestone", *sys.argv[1:]],
        now=now,
    )
    folder = store.create_folder(results, workload.name, now)
    store.write_experiment(folder, experiment)
    return folder, experiment


def _chosen(names: list[str] | None, baseline: str | None) -> tuple[list[Allocator], str]:
    """The allocators to compare, the baseline among them, and the baseline's name."""
    known = discover()
    chosen = [allocator for allocator in known if allocator.available] if names is None else find(names, known=known)
    if not chosen:
        raise PlanError("no allocator to compare; 'freestone allocators' shows what is here")
    if baseline is None:
        system = [allocator for allocator in known if allocator.name == SYSTEM and allocator.available]
        first = system[0] if system else chosen[0]
    else:
        (first, *_) = find([baseline], known=[*known, *chosen])  # also by a name given as NAME=PATH
    if first.name not in [allocator.name for allocator in chosen]:
        chosen = [first, *chosen]
    return chosen, first.name


def _resumed(folder: Path, command: Sequence[str], given: Sequence[str]) -> tuple[Path, Experiment]:
    experiment = store.read_experiment(folder)
    if given:
        raise PlanError(f"--resume goes on with the settings of {folder}; leave out {', '.join(given)}")
    workload = experiment.workloads[0]
    if command and list(command) != workload.command:
        raise PlanError(f"cannot resume {folder}: it measured another command ({' '.join(workload.command)})")
    refusal = mismatch(experiment, machine.describe().id, [_as_found(each) for each in experiment.configurations])
    if refusal:
        raise PlanError(f"cannot resume {folder}: {refusal}")
    program.require(workload.command, {**os.environ, **workload.environment}, workload.directory or ".")
    return folder, experiment


def _as_found(configuration: Configuration) -> Configuration:
    """A configuration of an earlier sitting with the allocator as it is now."""
    before = configuration.allocator
    known = {allocator.name: allocator for allocator in discover()}
    allocator = known.get(before.name)
    try:
        if allocator is None or allocator.file != before.file:
            (allocator,) = find([f"{before.name}={before.file}"])
    except AllocatorError as error:
        allocator = before.model_copy(update={"available": False, "reason": str(error)})
    return configuration.model_copy(update={"allocator": allocator})


def _measure(folder: Path, experiment: Experiment, *, as_json: bool, with_report: bool) -> int:
    progress = Progress(sys.stderr)
    damage = store.damage_line(folder, store.read_trials(folder).damage)
    if damage:
        progress.line(damage)
    status = ExitStatus.FINE
    trouble: list[str] = []
    with Interruption() as stop:
        try:
            outcome = run(experiment, folder, on_event=progress, stop=stop)
        except StoreError as error:
            outcome, status = Outcome.INTERRUPTED, ExitStatus.STORE
            trouble.append(str(error))
        except (LauncherBroken, NativePartMissing) as error:
            outcome, status = Outcome.INTERRUPTED, ExitStatus.NOTHING_MEASURED
            trouble.append(str(error))
        finally:
            progress.clear()
    records = store.read_trials(folder).records
    summary = summarise(experiment, records)
    _show(summary, folder, as_json=as_json)
    try:
        store.write_summary(folder, summary)
        write_parquet(folder, records)
        if with_report and outcome is not Outcome.INTERRUPTED:  # whoever stops does not want to wait
            report = _report(folder)
            if not as_json:
                print(f"Report:  {report}")
    except StoreError as error:
        trouble = trouble or [str(error)]
        status = status or ExitStatus.STORE
    if outcome is Outcome.INTERRUPTED:
        kept = f"{len(records)} finished trial{'' if len(records) == 1 else 's'} kept"
        why = trouble[0] if trouble else "interrupted"
        progress.line(f"{why}; {kept}, go on with: freestone compare --resume {folder}")
        return status or (128 + stop.signal if stop.signal else ExitStatus.INTERRUPTED)
    for line in trouble:
        progress.line(f"{line}; every record is kept")
    return status or _verdict(summary)


def _report(folder: Path) -> Path:
    from freestone.reports import html  # late: the figures' libraries are large

    try:
        return html.write([folder], folder / store.REPORT_FILE)
    except html.ReportError as error:
        raise StoreError(str(error)) from error


def _show(summary: Summary, folder: Path, *, as_json: bool) -> None:
    if as_json:
        print(summary.model_dump_json(indent=2))
    else:
        width, colour, plain = terminal.width(), terminal.has_colour(sys.stdout), terminal.is_ascii(sys.stdout)
        print(table.render(summary, width=width, colour=colour, ascii_only=plain))
        print(f"Records: {folder}")
    sys.stdout.flush()


def _verdict(summary: Summary) -> ExitStatus:
    measured = [cell.status == "ok" for cell in summary.cells]
    if all(measured):
        return ExitStatus.FINE
    return ExitStatus.PARTLY_MEASURED if any(measured) else ExitStatus.NOTHING_MEASURED
