"""An experiment from its plan to what came of it. Shared by the verbs that measure."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path

from freestone import machine
from freestone.allocators import (
    OWN,
    SYSTEM,
    AllocatorError,
    configuration_for,
    configurations,
    discover,
    find,
    twins,
    variables,
)
from freestone.analysis import same_program, summarise
from freestone.commands import program
from freestone.commands.counting import Counting
from freestone.commands.progress import Progress
from freestone.commands.status import ExitStatus, Stop
from freestone.experiments import Interruption, Outcome, input_file, machine_lock, mismatch, run, unfinished
from freestone.experiments.events import Event, StageFailed
from freestone.experiments.interruption import TrialBrokenOff
from freestone.experiments.local import Around, environment_alone
from freestone.experiments.plan import Extent, PlanError, new_experiment
from freestone.native import NativePartMissing
from freestone.records import parquet, store
from freestone.records.schema import Configuration, Experiment, Summary, TrialRecord, Workload
from freestone.records.store import StoreError
from freestone.suites import Setting
from freestone.trials import LauncherBroken, environment, permissions, surroundings
from freestone.trials.named_files import NamedFiles

Show = Callable[[Experiment, Sequence[TrialRecord], Summary], None]
"""Prints what came of an experiment; may raise StoreError for what it writes beside."""


def planned(
    name: str,
    workloads: Sequence[Workload],
    allocators: Sequence[str] | None,
    baseline: str | None,
    extent: Extent,
    settings: Sequence[Setting] = (),
) -> Experiment:
    """A new experiment; nothing is written yet.

    Args:
        name: what to call it.
        allocators: names or paths of libraries, with settings; None for all that are here.
        baseline: the allocator the others are held against; None for the system's.
        settings: each is measured beside the plain allocators that it is for, where they are among those compared.

    Raises:
        AllocatorError, PlanError: what was asked for cannot be run.
        Stop: nothing can be proved where this runs.
    """
    _require_census()
    compared, held_against = chosen(allocators, baseline)
    for workload in workloads:
        around = [text or "" for _, text in workload.stages] + [workload.input.file if workload.input else ""]
        try:
            "\0".join([*workload.command, *workload.environment.values(), workload.directory or "", *around]).encode()
        except UnicodeEncodeError as error:
            raise PlanError("a program, argument, file or folder whose name is not UTF-8 cannot be recorded") from error
    return new_experiment(
        name=name,
        workloads=input_file.described(workloads),
        configurations=_with_settings(compared, settings),
        baseline=held_against,
        extent=extent,
        machine=machine.describe(),
        command_line=["freestone", *sys.argv[1:]],
        now=datetime.now(UTC),
        environment=environment.describe(os.environ, kept=any(workload.keep_environment for workload in workloads)),
    )


def _with_settings(compared: Sequence[Configuration], settings: Sequence[Setting]) -> list[Configuration]:
    """Every configuration as it is, and behind a plain allocator each setting that is for it: ``glibc+trim-0``."""
    return [
        each
        for plain in compared
        for each in [
            plain,
            *(
                configuration_for(plain.allocator, name=f"{plain.name}+{setting.name}", environment=setting.environment)
                for setting in settings
                if plain.name in setting.allocators
            ),
        ]
    ]


def begun(results: Path, name: str, experiment: Experiment, into: Path | None = None) -> Path:
    """The folder of a new experiment, with its head in it.

    Args:
        into: the folder itself, where it is not to have a new name below ``results``.

    Raises:
        StoreError: it cannot be made.
    """
    if into is None:
        folder = store.create_folder(results, name, datetime.fromisoformat(experiment.created_at))
    else:
        folder = into
        store.make_folder(folder)
    store.write_experiment(folder, experiment)
    return folder


def chosen(names: Sequence[str] | None, baseline: str | None) -> tuple[list[Configuration], str]:
    """The configurations to compare, the baseline among them, and the baseline's name.

    Raises:
        AllocatorError, PlanError: one that is not here, or none at all.
    """
    known = discover()
    here = [configuration_for(allocator) for allocator in known if allocator.available]
    compared = here if names is None else configurations(names, known=known)
    for own in known if names is None else ():
        if own.name == OWN and not own.available:  # nobody expects that the lab comes without its library
            print(f"freestone: {OWN} is left out: {own.reason}", file=sys.stderr)
    if not compared:
        raise PlanError("no allocator to compare; 'freestone allocators' shows what is here")
    if baseline is None:
        system = [each for each in here if each.name == SYSTEM]
        first = system[0] if system else compared[0]
    else:
        # Also by a name given as NAME=PATH.
        first, *more = configurations([baseline], known=[*known, *(each.allocator for each in compared)])
        if more:
            raise PlanError(f"--baseline takes one allocator, not {1 + len(more)}: '{baseline}'")
    if first.name not in [each.name for each in compared]:
        compared = [first, *compared]
    return compared, first.name


def resumed(folder: Path, given: Sequence[str]) -> Experiment:
    """The experiment of a folder, fit to go on here and now.

    Args:
        given: options that were given beside ``--resume`` and would make it another experiment.

    Raises:
        PlanError: it would be another experiment.
        StoreError: the folder is none of ours.
        Stop: a program is no longer there, or nothing can be proved where this runs.
    """
    experiment = store.read_experiment(folder)
    if given:
        raise PlanError(f"--resume goes on with the settings of {folder}; leave out {', '.join(given)}")
    require_same(folder, experiment)
    return experiment


def require_same(folder: Path, experiment: Experiment) -> None:
    """Whether an experiment can go on here and now; errors are those of :func:`resumed`.

    Args:
        folder: that it is kept in, with what was measured of it.
        experiment: its head.
    """
    _require_census()
    refusal = mismatch(
        experiment,
        machine.describe(),
        [_as_found(each) for each in experiment.configurations],
        environment.describe(os.environ, kept=any(workload.keep_environment for workload in experiment.workloads)),
    )
    if refusal:
        raise PlanError(f"cannot resume {folder}: {refusal}")
    other = input_file.changed(experiment.workloads)
    if other:
        raise PlanError(f"cannot resume {folder}: {other}")
    for workload in experiment.workloads:
        if not input_file.may_make(workload):
            program.require(workload.command, {**os.environ, **workload.environment}, workload.directory or ".")
    changed = _changed_file(experiment, store.read_trials(folder).records)
    if changed:
        raise PlanError(f"cannot resume {folder}: {changed} is not what it was when it was begun")


def _changed_file(experiment: Experiment, records: Sequence[TrialRecord]) -> str | None:
    """The name of a file of some command that has changed since it was measured; None when none has."""
    files = NamedFiles()
    for workload in experiment.workloads:
        if input_file.may_make(workload):
            continue  # what a setup makes is not there yet
        measured = next((record.files for record in records if record.workload == workload.name), {})
        changed = same_program.what_changed(measured, files.contents(workload, {**os.environ, **workload.environment}))
        if changed:
            return changed
    return None


def _require_census() -> None:
    """Told before anything is run: every trial would be INVALID.

    Raises:
        Stop: the kernel says nothing of the programs that are started.
    """
    try:
        why = surroundings.obstacle(permissions(), surroundings.surroundings())
    except (LauncherBroken, NativePartMissing) as error:
        raise Stop(str(error), ExitStatus.NOTHING_MEASURED) from error
    if why is not None:
        raise Stop(why, ExitStatus.NOTHING_MEASURED)


def _as_found(configuration: Configuration) -> Configuration:
    """A configuration of an earlier session with the allocator as it is now."""
    before = configuration.allocator
    known = {allocator.name: allocator for allocator in discover()}
    allocator = known.get(before.name)
    try:
        if allocator is None or allocator.file != before.file:
            (allocator,) = find([f"{before.name}={before.file}"])
    except AllocatorError as error:
        allocator = before.model_copy(update={"available": False, "reason": str(error)})
    return configuration.model_copy(update={"allocator": allocator})


def measure(
    folder: Path,
    experiment: Experiment,
    *,
    verb: str,
    show: Show,
    report: Callable[[], None] | None,
    left_out: Collection[str] = (),
    around: Around = environment_alone,
    environment_told: bool = False,
    ordered: bool = False,
    counting: Counting | None = None,
) -> int:
    """Run what the folder does not hold yet, count what is asked for, show what there is, and return the exit status.

    Args:
        verb: the one that resumes, for the line that says how to go on.
        show: prints the results.
        report: writes a report; not called where somebody has stopped the experiment and does not want to wait. It may
            raise StoreError.
        left_out: workloads that are not run now.
        around: sets what a configuration needs beside the program's environment, for each of its runs.
        environment_told: whether what is taken out of the programs' environment was told before.
        ordered: whether it is one place's part of an order, of which another may be this very machine.
        counting: counts after the last round; None if nothing is counted.
    """
    progress = Progress(
        sys.stderr,
        several=len(experiment.workloads) > 1,
        servers=[each.name for each in experiment.workloads if each.service is not None],
    )
    earlier = store.read_trials(folder)
    damage = store.damage_line(folder, earlier.damage)
    if damage:
        progress.line(damage)
    about = [] if environment_told else about_environment(experiment)
    for line in [*about, *_told_of(experiment.configurations)]:
        progress.note(line)
    status = ExitStatus.FINE
    trouble: list[str] = []
    not_set_up: list[str] = []

    def watched(event: Event) -> None:
        progress(event)
        if isinstance(event, StageFailed) and event.title == "setup":
            not_set_up.append(event.workload)

    with Interruption() as stop, contextlib.ExitStack() as alone:
        try:
            if ordered and unfinished(experiment, earlier.records):
                alone.enter_context(machine_lock.held(stop, progress.line))
            outcome = run(
                experiment,
                folder,
                left_out=left_out,
                on_event=watched,
                stop=stop,
                changed=lambda: machine.changed(experiment.machine),
                around=around,
            )
            if counting is not None and outcome is not Outcome.INTERRUPTED:
                with stop.breakable():
                    if not counting.take(progress, [*left_out, *not_set_up]):
                        status = ExitStatus.PARTLY_MEASURED
        except TrialBrokenOff:
            outcome = Outcome.INTERRUPTED
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
    if counting is None and outcome is not Outcome.INTERRUPTED and 0 < len(records) == len(earlier.records):
        nothing_left = _nothing_left(experiment, records, spent=outcome is Outcome.BUDGET)
        if nothing_left is not None:
            progress.line(f"{folder} {nothing_left}")
    try:
        show(experiment, records, summary)
    except StoreError as error:
        trouble.append(str(error))
        status = status or ExitStatus.STORE
    sys.stdout.flush()
    try:
        store.write_summary(folder, summary)
        lacking = parquet.missing()
        if lacking is None:
            parquet.write_parquet(folder, records)
        else:
            progress.line(f"no {store.PARQUET_FILE}: {lacking}")
        if report is not None and outcome is not Outcome.INTERRUPTED:
            report()
    except StoreError as error:
        trouble = trouble or [str(error)]
        status = status or ExitStatus.STORE
    if outcome is Outcome.INTERRUPTED:
        kept = f"{len(records)} finished trial{'' if len(records) == 1 else 's'} kept"
        why = trouble[0] if trouble else "interrupted"
        progress.line(f"{why}; {kept}, go on with: {program.tool_as_typed()} {verb} --resume {folder}")
        return status or (128 + stop.signal if stop.signal else ExitStatus.INTERRUPTED)
    for line in trouble:
        progress.line(f"{line}; every record is kept")
    if not_set_up:
        again = f"{program.tool_as_typed()} {verb} --resume {folder}"
        progress.line(f"not measured, since setup failed: {', '.join(not_set_up)}; go on with: {again}")
    return status or _verdict(summary)


def _nothing_left(experiment: Experiment, records: Sequence[TrialRecord], *, spent: bool) -> str | None:
    """Why a session has measured nothing, in words behind the folder; None where it might have.

    Args:
        spent: whether no round fits the time budget any more.
    """
    if not unfinished(experiment, records):
        return "is complete: nothing was left to measure"
    return "has spent its time budget: nothing was left to measure" if spent else None


def _told_of(configurations: Sequence[Configuration]) -> list[str]:
    return [*variables.unread(configurations), *twins(configurations)]


def about_environment(experiment: Experiment) -> list[str]:
    """What programs would have inherited and do not, or inherit all the same: a line each."""
    given = [workload.environment.keys() for workload in experiment.workloads]
    found = {
        name: value
        for name, value in os.environ.items()
        if environment.steers(name) and not all(name in names for names in given)
    }
    linked = experiment.machine.facts.get("jemalloc_conf")
    told = [f"jemalloc is steered by /etc/malloc.conf: {linked}; nobody but root can take that out"] if linked else []
    if not found:
        return told
    named = ", ".join(f"{name}={value if len(value) <= 40 else value[:37] + '...'}" for name, value in found.items())
    keeping = [workload.name for workload in experiment.workloads if workload.keep_environment]
    if len(keeping) == len(experiment.workloads):
        return [f"kept in every program's environment: {named}", *told]
    kept = f" but {', '.join(keeping)}'s" if keeping else ""
    out = f"taken out of every program's environment{kept}: {named}; --env NAME puts one back, --keep-env keeps all"
    return [out, *told]


def _verdict(summary: Summary) -> ExitStatus:
    measured = [cell.status == "ok" for cell in summary.cells]
    if all(measured):
        return ExitStatus.FINE
    return ExitStatus.PARTLY_MEASURED if any(measured) else ExitStatus.NOTHING_MEASURED
