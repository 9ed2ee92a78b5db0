"""``freestone advise``: what to run a program under, in a minute and a sentence."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from freestone.allocators import AllocatorError, discover
from freestone.analysis import headline
from freestone.commands import measurement, program, to_use
from freestone.commands.durations import BUDGET
from freestone.commands.options import Allocators, Results
from freestone.commands.service_options import NO_SERVICE, ServiceOptions
from freestone.commands.status import ExitStatus, Stop
from freestone.experiments.plan import Extent, PlanError
from freestone.experiments.schedule import elapsed_s
from freestone.records.schema import Experiment, Summary, TrialRecord, Workload
from freestone.records.store import StoreError
from freestone.reports import advice

CANDIDATES = ("glibc", "freestone", "mimalloc", "jemalloc", "tcmalloc")
"""Those that people choose between: with all there are a minute would hold too few rounds."""


def advise(
    *command: Annotated[str, Parameter(help="The program and its arguments, after --.")],
    allocators: Allocators = None,
    time_budget: Annotated[
        float,
        BUDGET,
        Parameter(help="Seconds, or as in 5m. No round is begun that would not fit; the first always is."),
    ] = 60.0,
    env: Annotated[
        list[str] | None, Parameter(negative="", help="NAME=VALUE for the program's environment. May be given again.")
    ] = None,
    results: Results = Path("results"),
    service: ServiceOptions = NO_SERVICE,
) -> int:
    """Say in one sentence which allocator to run a program under, after a minute of comparing.

    It is a comparison like any other, of the allocators that people choose between; its records are kept, and
    freestone report shows them. Something is advised only where it is really better.

    Examples:

        freestone advise -- ./my-program its arguments
        freestone advise --time-budget 300 -- ./my-program
        freestone advise --ready 'redis-cli ping' --load 'redis-benchmark -t set' -- redis-server

    Exit status: as of freestone compare: 0 all measured, 2 wrong use, 3 nothing could be measured, 4 some allocators
    failed or are INVALID, 5 results could not be written, 126 or 127 the program cannot be executed or found, 130
    interrupted.
    """
    try:
        extent = Extent(time_budget_s=time_budget)
        settings = program.settings(env or [])
        program.require_last(command)
        executable = program.require(command, {**os.environ, **settings}, verb="advise")
        workload = service.applied(
            Workload(name=executable.name, command=list(command), environment=settings, directory=os.getcwd())
        )
        asked = allocators if allocators is not None else _candidates()
        experiment = measurement.planned(workload.name, [workload], asked, None, extent)
        folder = measurement.begun(results, workload.name, experiment)
    except (AllocatorError, PlanError) as error:
        raise Stop(str(error), ExitStatus.USAGE) from error
    except StoreError as error:
        raise Stop(str(error), ExitStatus.STORE) from error
    status = measurement.measure(
        folder,
        experiment,
        verb="compare",
        show=_show,
        report=None,
    )
    print(f"freestone: the figures: freestone report {folder}", file=sys.stderr)
    return status


def _show(experiment: Experiment, records: Sequence[TrialRecord], summary: Summary) -> None:
    level = headline.level_with_best(experiment, records, summary)
    print(
        advice.sentence(
            experiment,
            summary,
            sum(map(elapsed_s, records)),
            level,
            brings_malloc=to_use.brings_malloc(experiment.workloads[0]),
        )
    )


def _candidates() -> list[str]:
    return [each.name for each in discover() if each.available and each.name in CANDIDATES]
