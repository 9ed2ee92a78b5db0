"""``freestone bench``: every workload of a suite under every allocator, interleaved, and the scoreboard."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from freestone import suites
from freestone.allocators import AllocatorError
from freestone.commands import (
    bench_all,
    bench_suites,
    counting,
    into_folder,
    measurement,
    on_places,
    scoreboard,
)
from freestone.commands.bench_request import ALL, NOTHING_ASKED, BenchRequest, require_some
from freestone.commands.counting import Counted
from freestone.commands.durations import Rest
from freestone.commands.options import Allocators, Results, Resume, Seed, TimeBudget, Timeout, Whole
from freestone.commands.place_options import HERE, PlaceOptions
from freestone.commands.status import ExitStatus, Stop
from freestone.experiments.plan import PlanError
from freestone.records.store import StoreError
from freestone.suites import SuiteError

QUICK_S: Final = 60.0
"""What a suite takes at its small sizes, where nobody said how often; a first round is run all the same."""


def bench(
    *suite: Annotated[str, Parameter(help="Names of suites, or .toml files; or all. --list shows which there are.")],
    allocators: Allocators = None,
    rounds: Annotated[
        Whole,
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
        bool,
        Parameter(
            negative="",
            help="The suite's small sizes, and as many rounds as fit into a minute: to try it out, not to judge.",
        ),
    ] = False,
    settings: Annotated[
        list[str] | None,
        Parameter(negative="", help="Of the suite's settings, those to measure too. Default: all; 'none' for none."),
    ] = None,
    idle: Annotated[
        Rest,
        Parameter(help="Let each program that can sleep so many seconds after its work, and take its RSS then."),
    ] = None,
    idle_rounds: Annotated[
        Whole, Parameter(help="Let them sleep in the first so many rounds only. Default: in all.")
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
    count: Counted = None,
    places: PlaceOptions = HERE,
    markdown: Annotated[Path | None, Parameter(help="Write the scoreboard into this file as Markdown.")] = None,
    json: Annotated[bool, Parameter(negative="", help="Print the score as JSON instead of tables.")] = False,
    list_: Annotated[
        bool, Parameter(name="--list", negative="", help="Show the suites, or a suite's workloads.")
    ] = False,
) -> int:
    """Run a suite of workloads under every allocator and show the scoreboard. Several suites are run as one.

    Every round runs every workload under every allocator once, all in one random order, and the baseline twice. Each
    run is proved and recorded as by freestone compare. The scoreboard holds one allocator against the best of the
    others on each workload, and every allocator against the best of all. 'all' runs every suite that comes along, one
    after the other, and writes one report of them; --resume goes on with it when it names its folder of results.

    Examples:

        freestone bench field apps
        freestone bench field -a freestone,mimalloc,jemalloc --only 'random-*' -n 5
        freestone bench apps --time-budget 600 --markdown apps.md
        freestone bench all --quick
        freestone bench field --on ssh:board1,board2
        freestone bench --list
        freestone bench --resume results/20261120T131500Z-field
        freestone bench --resume results
        freestone bench parallel --quick --count instructions

    Exit status: 0 all measured, 2 wrong use, 3 nothing could be measured, 4 some cells failed or are INVALID,
    5 results could not be written, 130 interrupted.
    """
    request = BenchRequest(
        allocators, rounds, time_budget, only or [], quick, settings, idle, idle_rounds, baseline, timeout, seed
    )
    try:
        if list_:
            return _list(suite, request)
        places.require_one(resume)
        counting.require_tools(count)
        into_folder.require_names(places, allocators, baseline)
        of_one = [*_for_one(markdown, json, count), *(["--subject"] if subject else [])]
        if resume is not None and on_places.is_order(resume):
            given = {"SUITE": suite or None, "--name": name, **request.given()}
            return on_places.resume(resume, "bench", given, (), places.on, of_one)
        if places.on is not None:
            return on_places.measure(_ordered(suite, name), places.on, results, seed, of_one)
        if places.into is not None:
            if ALL in suite:
                raise SuiteError(_ALL_ELSEWHERE)
            resume = into_folder.begun_already(places.into)
            if resume is not None:
                request.require_same(suite, resume)
                into_folder.require_same_line(resume, sys.argv[1:])
                suite, name, request = (), None, NOTHING_ASKED  # the very same words as when it was begun
        if resume is not None:
            more = [
                word for word, value in {"SUITE": suite or None, "--name": name, **request.given()}.items() if value
            ]
            if bench_all.is_begun(resume):
                return bench_all.resumed(resume, [*more, *of_one])
            experiment, left_out = bench_suites.resumed(resume, more)
            held = scoreboard.subject_of(experiment, subject)
            short = into_folder.is_short(places, allocators, experiment)
            status = bench_suites.measured(
                resume,
                experiment,
                held,
                markdown=markdown,
                as_json=json,
                left_out=left_out,
                ordered=places.into is not None,
                count=count,
            )
            return into_folder.status(status, short=short)
        if ALL in suite:
            if len(suite) > 1 or name is not None or _for_one(markdown, json, count):
                raise SuiteError(f"'{ALL}' stands alone: --name, --markdown, --json and --count are for single suites")
            return bench_all.begun(results, request, subject)
        called = name or _called(suite)
        here = into_folder.those_here(places, allocators)
        request = request if here is allocators else request.of_those(here)
        experiment = request.within(QUICK_S * len(suite)).experiment(suite, called)
        held = scoreboard.subject_of(experiment, subject)
        short = into_folder.is_short(places, allocators, experiment)
        folder = measurement.begun(results, called, experiment, places.into)
        status = bench_suites.measured(
            folder, experiment, held, markdown=markdown, as_json=json, ordered=places.into is not None, count=count
        )
        return into_folder.status(status, short=short)
    except (AllocatorError, PlanError, SuiteError) as error:
        raise Stop(str(error), ExitStatus.USAGE) from error
    except StoreError as error:
        raise Stop(str(error), ExitStatus.STORE) from error


def _called(suite: Sequence[str]) -> str:
    return "-".join(Path(each).name.removesuffix(".toml") for each in suite)


_ALL_ELSEWHERE: Final = (
    f"'{ALL}' makes a folder of each suite, and a place has one: name the suites, as in: freestone bench field apps"
)


def _ordered(suite: Sequence[str], name: str | None) -> str:
    """What an order of suites is called; refused here is what no place could measure.

    Raises:
        SuiteError: there is no such suite.
    """
    if ALL in suite:
        raise SuiteError(_ALL_ELSEWHERE)
    require_some(suite)
    for each in suite:
        if not each.endswith(".toml"):  # a file may be there and not here
            suites.load(each)
    return name or _called(suite)


def _for_one(markdown: Path | None, as_json: bool, count: Sequence[str] | None) -> list[str]:
    """Options that were given and are about the scoreboard or the counts of one suite."""
    return [word for word, given in {"--markdown": markdown, "--json": as_json, "--count": count}.items() if given]


def _list(names: Sequence[str], request: BenchRequest) -> int:
    if not names:
        for name in suites.names():
            print(f"{name:<12} {suites.load(name).title}")
        return ExitStatus.FINE
    if ALL in names:
        for name in suites.leaders():
            print(f"suite {name}:")
            _list([name], request)
        return ExitStatus.FINE
    loaded = [suites.load(name) for name in names]
    selection = request.selection(loaded)
    for workload in selection.workloads:
        print(workload.name + ("" if workload.counted else "  (not counted in the means)"))
    for absent in selection.absent:
        print(f"{absent.name}  (left out: {absent.reason})")
    for setting in suites.settings(loaded):
        told = " ".join(f"{name}={value}" for name, value in setting.environment.items())
        print(f"setting {setting.name}: {', '.join(setting.allocators)} with {told}")
    return ExitStatus.FINE
