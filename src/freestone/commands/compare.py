"""``freestone compare``: programs under every allocator, round by round."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from freestone.allocators import AllocatorError
from freestone.analysis.pareto import Goal
from freestone.commands import (
    compare_quick,
    compare_settings,
    counting,
    into_folder,
    measurement,
    on_places,
    one_folder,
    terminal,
    to_use,
)
from freestone.commands.acceptance import STRICT, Acceptance
from freestone.commands.compare_request import CompareRequest, called
from freestone.commands.compare_settings import NO_SETTINGS, SettingOptions
from freestone.commands.counting import Counted, Counting
from freestone.commands.durations import Rest
from freestone.commands.export_options import NO_EXPORT, ExportOptions
from freestone.commands.options import Allocators, Results, Resume, Seed, TimeBudget, Timeout, Whole
from freestone.commands.place_options import HERE, PlaceOptions
from freestone.commands.program_options import ONE_PROGRAM, ProgramOptions
from freestone.commands.service_options import NO_SERVICE, ServiceOptions
from freestone.commands.stage_options import NO_STAGES, StageOptions
from freestone.commands.status import ExitStatus, Stop
from freestone.experiments.plan import Extent, PlanError
from freestone.records import store
from freestone.records.schema import Experiment, Summary, TrialRecord
from freestone.records.store import StoreError
from freestone.reports import extras, grid, scan_table, table


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
    quick: Annotated[
        bool,
        Parameter(
            negative="",
            help="A minute of glibc, freestone, mimalloc, jemalloc and tcmalloc, and the answer in one sentence.",
        ),
    ] = False,
    baseline: Annotated[
        str | None, Parameter(help="The allocator the others are held against. Default: the system's.")
    ] = None,
    idle: Annotated[
        Rest,
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
    count: Counted = None,
    setting_options: SettingOptions = NO_SETTINGS,
    json: Annotated[bool, Parameter(negative="", help="Print the summary as JSON instead of a table.")] = False,
    programs: ProgramOptions = ONE_PROGRAM,
    stages: StageOptions = NO_STAGES,
    acceptance: Acceptance = STRICT,
    service: ServiceOptions = NO_SERVICE,
    places: PlaceOptions = HERE,
    exports: ExportOptions = NO_EXPORT,
    report: Annotated[bool, Parameter(name="--report", negative="--no-report", help="Write the HTML report.")] = True,
) -> int:
    """Run a program under every allocator and say which is best for what.

    Every round runs every allocator once, in random order, and the baseline twice: how it differs from itself is the
    noise. Each run is proved: an allocator that did not serve every process of the program has an INVALID cell
    and no number. Records, summary and report are in a new folder below results/.

    Examples:

        freestone compare -- python3 program.py
        freestone compare --quick -- ./my-program its arguments
        freestone compare -a freestone,jemalloc -n 20 -- ./server --selftest
        freestone compare --time-budget 60 --env PYTHONMALLOC=malloc -- python3 a.py
        freestone compare -a ./libmymalloc.so,glibc -- ls -lR /usr
        freestone compare --settings all --goal memory --time-budget 5m -- ./my-program
        freestone compare --shell --prepare 'rm -f out' -- 'sort big.txt | uniq -c > out'
        freestone compare --scan threads=1..8*2 -- ./solve --threads {threads}
        freestone compare --command './parse a.json' --command './parse b.json' --export-csv times.csv
        freestone compare --ready 'redis-cli ping' --load 'redis-benchmark -n 500000 -t set' -- redis-server
        freestone compare --resume results/20261120T131500Z-program
        freestone compare --resume results/20261120T131500Z-program --count calls

    Exit status: 0 all measured, 2 wrong use, 3 nothing could be measured, 4 some allocators failed or are INVALID,
    5 results could not be written, 126 or 127 the program cannot be executed or found, 130 interrupted.
    """
    request = CompareRequest(
        command, name, env or [], keep_env, idle, idle_rounds, programs, stages, acceptance, service
    )
    try:
        exports.require_writable()
        counting.require_tools(count)
        setting_options.require_use(resumed=resume is not None)
        places.require_one(resume, report=report)
        into_folder.require_names(places, allocators, baseline)
        given = {
            "-a": allocators,
            "-n": rounds,
            "--time-budget": time_budget,
            "--quick": quick or None,
            "--baseline": baseline,
            "--timeout": timeout,
            "--seed": seed,
            "--settings": setting_options.settings,
            **request.given(),
        }
        of_one = [*exports.given(), *(["--json"] if json else []), *(["--quick"] if quick else [])]
        of_one += ["--count"] if count else []
        of_one += ["--settings"] if setting_options.settings else []
        if resume is not None and on_places.is_order(resume):
            more = {"--no-report": None if report or quick else True}
            return on_places.resume(resume, "compare", {**given, **more}, command, places.on, of_one)
        if places.on is not None:
            return on_places.measure(request.called(), places.on, results, seed, of_one)
        if places.into is not None:
            resume = into_folder.begun_already(places.into)
        if resume is not None:
            folder = one_folder.required(resume)
            if places.into is not None:
                into_folder.require_same_line(folder, sys.argv[1:])
                experiment = measurement.resumed(folder, [])
            else:
                experiment = request.resumed(folder, [option for option, value in given.items() if value is not None])
        else:
            if quick:
                allocators = compare_quick.candidates() if allocators is None else allocators
                time_budget = compare_quick.BUDGET_S if time_budget is None and rounds is None else time_budget
            extent = Extent(rounds=rounds, time_budget_s=time_budget, timeout_s=timeout, seed=seed)
            workloads = request.workloads(lambda line: print(f"freestone: {line}", file=sys.stderr))
            compare_quick.require_one_program(len(workloads) if quick else 1)
            here = into_folder.those_here(places, allocators)
            experiment = setting_options.planned(name or called(workloads), workloads, here, baseline, extent)
            folder = measurement.begun(results, name or called(workloads), experiment, places.into)
        short = into_folder.is_short(places, allocators, experiment)
        counts = Counting(folder, experiment, count) if count else None
    except (AllocatorError, PlanError) as error:
        raise Stop(str(error), ExitStatus.USAGE) from error
    except StoreError as error:
        raise Stop(str(error), ExitStatus.STORE) from error

    def show(_: Experiment, records: Sequence[TrialRecord], summary: Summary) -> None:
        if quick and not json:
            compare_quick.show(experiment, records, summary, folder)
        else:
            _show(experiment, records, summary, folder, setting_options.goal, counts if json else None, as_json=json)
        if counts is not None and not json:
            print(counts.text())
        exports.write(experiment, records, summary)

    status = measurement.measure(
        folder,
        experiment,
        verb="compare",
        show=show,
        report=(lambda: _report(folder, as_json=json)) if report and not quick else None,
        ordered=places.into is not None,
        counting=counts,
    )
    return into_folder.status(status, short=short)


def _show(
    experiment: Experiment,
    records: Sequence[TrialRecord],
    summary: Summary,
    folder: Path,
    goal: Goal | None,
    counts: Counting | None,
    *,
    as_json: bool,
) -> None:
    if as_json:
        row = compare_settings.as_json(experiment, records, summary, goal, folder)
        counted = {} if counts is None else counts.as_json()
        print(json_format.dumps({**row, **counted}, indent=2, ensure_ascii=False))
        return
    width, colour, plain = terminal.width(), terminal.has_colour(sys.stdout), terminal.is_ascii(sys.stdout)
    print(table.render(summary, width=width, colour=colour, ascii_only=plain))
    for scanned in scan_table.grids(experiment, summary):
        print(grid.text(scanned, width=width, colour=colour, ascii_only=plain))
    print(compare_settings.shown(experiment, records, summary, goal, width=width), end="")
    for line in [] if experiment.racing else to_use.printed(to_use.recommended(experiment, records, summary), width):
        print(line)
    print(f"Records: {folder}")


def _report(folder: Path, *, as_json: bool) -> None:
    lacking = extras.missing()
    if lacking is not None:
        print(f"freestone: no {store.REPORT_FILE}: {lacking}", file=sys.stderr)
        return
    from freestone.reports import html  # late: the figures' libraries are large

    try:
        written = html.write([folder], folder / store.REPORT_FILE, use=to_use.recommended)
    except html.ReportError as error:
        raise StoreError(str(error)) from error
    if not as_json:
        print(f"Report:  {written}")
