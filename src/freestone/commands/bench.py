"""``freestone bench``: every workload of a suite under every allocator, interleaved, and the scoreboard."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from freestone import suites
from freestone.allocators import AllocatorError
from freestone.commands import measuring, scoring
from freestone.commands.options import Allocators, Results, Resume, Seed, TimeBudget, Timeout
from freestone.commands.status import ExitStatus, Stop
from freestone.experiments import score
from freestone.experiments.plan import Extent, PlanError
from freestone.records.schema import Experiment, Summary, TrialRecord, Workload
from freestone.records.store import StoreError
from freestone.suites import Selection, SuiteError


def bench(
    *suite: Annotated[str, Parameter(help="Names of suites, or .toml files. --list shows which there are.")],
    allocators: Allocators = None,
    rounds: Annotated[
        int | None,
        Parameter(
            name=["--rounds", "-n"],
            help="How often everything is measured. Default: 10, or as many as fit --time-budget.",
        ),
    ] = None,
    time_budget: TimeBudget = None,
    only: Annotated[
        list[str] | None,
        Parameter(negative="", help="Workloads whose name matches this pattern, as in 'random-*'. May be repeated."),
    ] = None,
    quick: Annotated[
        bool, Parameter(negative="", help="The suite's small sizes: to try it out, not to judge.")
    ] = False,
    settings: Annotated[
        list[str] | None,
        Parameter(negative="", help="Of the suite's settings, those to measure too. Default: all; 'none' for none."),
    ] = None,
    idle: Annotated[
        int | None,
        Parameter(help="Let each program that can sleep so many seconds after its work, and take its RSS then."),
    ] = None,
    subject: Annotated[
        str | None,
        Parameter(help="The allocator to hold against the best of the others. Default: freestone, or the baseline."),
    ] = None,
    baseline: Annotated[
        str | None, Parameter(help="The allocator that runs twice in every round: the noise. Default: the system's.")
    ] = None,
    timeout: Timeout = None,
    name: Annotated[str | None, Parameter(help="What to call the experiment. Default: the suite's name.")] = None,
    seed: Seed = None,
    results: Results = Path("results"),
    resume: Resume = None,
    markdown: Annotated[Path | None, Parameter(help="Write the scoreboard into this file as Markdown.")] = None,
    json: Annotated[bool, Parameter(negative="", help="Print the score as JSON instead of tables.")] = False,
    list_: Annotated[
        bool, Parameter(name="--list", negative="", help="Show the suites, or a suite's workloads.")
    ] = False,
) -> int:
    """Run a suite of workloads under every allocator and show the scoreboard. Several suites are run as one.

    Every round runs every workload under every allocator once, all in one random order, and the baseline twice. Each
    run is proved and recorded as by freestone compare. The scoreboard holds one allocator against the best of the
    others on each workload, and every allocator against the best of all.

    Examples:

        freestone bench field apps
        freestone bench field -a freestone,mimalloc,jemalloc --only 'random-*' -n 5
        freestone bench apps --time-budget 600 --markdown apps.md
        freestone bench --list
        freestone bench --resume results/20261120T131500Z-field

    Exit status: 0 all measured, 2 wrong use, 3 nothing could be measured, 4 some cells failed or are INVALID,
    5 results could not be written, 130 interrupted.
    """
    try:
        if list_:
            return _list(suite, only or [], quick, idle)
        if resume is not None:
            given = {
                "SUITE": suite or None,
                "-a": allocators,
                "-n": rounds,
                "--time-budget": time_budget,
                "--only": only,
                "--quick": quick or None,
                "--settings": settings,
                "--idle": idle,
                "--baseline": baseline,
                "--timeout": timeout,
                "--name": name,
                "--seed": seed,
            }
            folder = resume
            experiment = measuring.resumed(folder, [word for word, value in given.items() if value is not None])
            suites.prepare(experiment.workloads)
            held = scoring.subject_of(experiment, subject)
        else:
            extent = Extent(rounds=rounds, time_budget_s=time_budget, timeout_s=timeout, seed=seed)
            workloads = _workloads(suite, only or [], quick, idle)
            called = name or "-".join(Path(each).name.removesuffix(".toml") for each in suite)
            chosen = suites.settings([suites.load(each) for each in suite], settings)
            experiment = measuring.planned(called, workloads, allocators, baseline, extent, chosen)
            held = scoring.subject_of(experiment, subject)
            folder = measuring.begun(results, called, experiment)
    except (AllocatorError, PlanError, SuiteError) as error:
        raise Stop(str(error), ExitStatus.USAGE) from error
    except StoreError as error:
        raise Stop(str(error), ExitStatus.STORE) from error

    def show(experiment: Experiment, records: Sequence[TrialRecord], _: Summary) -> None:
        board = score(experiment, records, held)
        if markdown is not None:  # first: whoever reads along may close the pipe
            scoring.write_markdown(experiment, board, markdown)
        scoring.show(board, folder, as_json=json)

    return measuring.measure(folder, experiment, verb="bench", show=show, report=None)


def _selection(names: Sequence[str], only: Sequence[str], quick: bool, idle_s: int | None) -> Selection:
    loaded = [suites.load(name) for name in names]
    return suites.select(loaded, only=only, quick=quick, idle_s=idle_s, directory=os.getcwd())


def _workloads(names: Sequence[str], only: Sequence[str], quick: bool, idle_s: int | None) -> list[Workload]:
    if not names:
        raise SuiteError(f"no suite given; there are {', '.join(suites.names())}, as in: freestone bench field")
    selection = _selection(names, only, quick, idle_s)
    for absent in selection.absent:
        print(f"freestone: {absent.name} is left out: {absent.reason}", file=sys.stderr)
    if not selection.workloads:
        raise SuiteError(f"none of the workloads of {' and '.join(names)} can be measured here")
    suites.prepare(selection.workloads)
    return selection.workloads


def _list(names: Sequence[str], only: Sequence[str], quick: bool, idle_s: int | None) -> int:
    if not names:
        for name in suites.names():
            print(f"{name:<12} {suites.load(name).title}")
        return ExitStatus.FINE
    selection = _selection(names, only, quick, idle_s)
    for workload in selection.workloads:
        print(workload.name + ("" if workload.counted else "  (not counted in the means)"))
    for absent in selection.absent:
        print(f"{absent.name}  (left out: {absent.reason})")
    for setting in suites.settings([suites.load(name) for name in names]):
        told = " ".join(f"{name}={value}" for name, value in setting.environment.items())
        print(f"setting {setting.name}: {', '.join(setting.allocators)} with {told}")
    return ExitStatus.FINE
