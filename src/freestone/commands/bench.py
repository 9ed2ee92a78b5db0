"""``freestone bench``: every workload of a suite under every allocator, interleaved, and the scoreboard."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from freestone import suites
from freestone.allocators import AllocatorError
from freestone.commands import measuring, scoring
from freestone.commands.options import Allocators, Results, Resume, Seed, TimeBudget, Timeout, Whole
from freestone.commands.status import ExitStatus, Stop
from freestone.experiments import score, unfinished
from freestone.experiments.plan import Extent, PlanError
from freestone.experiments.statistics import paired_ratio
from freestone.records import store
from freestone.records.schema import Allocator, Experiment, Summary, TrialRecord, Workload
from freestone.records.store import StoreError
from freestone.suites import Absent, Selection, Setting, Suite, SuiteError

EVERY: Final = "all"
"""Stands for every suite that comes along."""

REPORT: Final = "all.html"

QUICK_S: Final = 60.0
"""What a suite takes at its small sizes, where nobody said how often; a first round is run all the same."""

QUICK_EVERY_S: Final = 1320.0
"""What all suites take together then."""


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
        Whole,
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
    after the other, and writes one report of them.

    Examples:

        freestone bench field apps
        freestone bench field -a freestone,mimalloc,jemalloc --only 'random-*' -n 5
        freestone bench apps --time-budget 600 --markdown apps.md
        freestone bench all --quick
        freestone bench --list
        freestone bench --resume results/20261120T131500Z-field

    Exit status: 0 all measured, 2 wrong use, 3 nothing could be measured, 4 some cells failed or are INVALID,
    5 results could not be written, 130 interrupted.
    """
    wish = _Wish(
        allocators, rounds, time_budget, only or [], quick, settings, idle, idle_rounds, baseline, timeout, seed
    )
    try:
        if list_:
            return _list(suite, wish)
        if resume is not None:
            given = {"SUITE": suite or None, "--name": name, **wish.given()}
            experiment = measuring.resumed(resume, [word for word, value in given.items() if value is not None])
            held = scoring.subject_of(experiment, subject)
            left_out = _too_large(resume, experiment)
            suites.prepare([each for each in experiment.workloads if each.name not in left_out])
            return _measured(resume, experiment, held, markdown, json, left_out)
        if EVERY in suite:
            return _every(suite, wish, subject, name, results, markdown, json)
        called = name or "-".join(Path(each).name.removesuffix(".toml") for each in suite)
        experiment = wish.within(QUICK_S * len(suite)).experiment(suite, called)
        held = scoring.subject_of(experiment, subject)
        return _measured(measuring.begun(results, called, experiment), experiment, held, markdown, json)
    except (AllocatorError, PlanError, SuiteError) as error:
        raise Stop(str(error), ExitStatus.USAGE) from error
    except StoreError as error:
        raise Stop(str(error), ExitStatus.STORE) from error


@dataclass(frozen=True)
class _Wish:
    """What was asked for, but for the suites."""

    allocators: list[str] | None
    rounds: int | None
    time_budget: float | None
    only: list[str]
    quick: bool
    settings: list[str] | None
    idle: int | None
    idle_rounds: int | None
    baseline: str | None
    timeout: float | None
    seed: int | None

    def given(self) -> dict[str, object]:
        """Option -> its value, None where it was not given."""
        return {
            "-a": self.allocators,
            "-n": self.rounds,
            "--time-budget": self.time_budget,
            "--only": self.only or None,
            "--quick": self.quick or None,
            "--settings": self.settings,
            "--idle": self.idle,
            "--idle-rounds": self.idle_rounds,
            "--baseline": self.baseline,
            "--timeout": self.timeout,
            "--seed": self.seed,
        }

    def selection(self, loaded: Sequence[Suite]) -> Selection:
        return suites.select(
            loaded,
            only=self.only,
            quick=self.quick,
            idle_s=self.idle,
            idle_rounds=self.idle_rounds,
            directory=os.getcwd(),
        )

    def extent(self) -> Extent:
        """How much is measured."""
        return Extent(rounds=self.rounds, time_budget_s=self.time_budget, timeout_s=self.timeout, seed=self.seed)

    def experiment(self, names: Sequence[str], called: str) -> Experiment:
        """A new experiment of these suites' workloads."""
        extent = self.extent()
        loaded = [suites.load(name) for name in names]
        workloads = _workloads(names, self.selection(loaded))
        chosen = suites.settings(loaded, self.settings)
        experiment = measuring.planned(called, workloads, self.allocators, self.baseline, extent, chosen)
        self.require(chosen, [configuration.allocator for configuration in experiment.configurations])
        return experiment

    def require(self, settings: Sequence[Setting], compared: Sequence[Allocator]) -> None:
        """Settings that were asked for by name are measured, or refused.

        Raises:
            SuiteError: one is for allocators that are not compared.
        """
        names = {allocator.name for allocator in compared}
        for setting in settings if self.settings is not None else ():
            if not names & set(setting.allocators):
                who = " and ".join(setting.allocators)
                raise SuiteError(f"the setting {setting.name} is for {who}; compare that too, or leave the setting out")

    def within(self, seconds: float) -> _Wish:
        """In so much time, where everything is to be quick and nobody said how often."""
        if not self.quick or self.rounds is not None or self.time_budget is not None:
            return self
        return replace(self, time_budget=max(1.0, seconds))

    def of(self, suite: Suite, chosen: Sequence[Setting]) -> _Wish:
        """With those of the chosen settings that this suite has, where some were asked for."""
        if self.settings is None:
            return self
        return replace(self, settings=[each.name for each in suite.setting if each in chosen] or [suites.NO_SETTING])


def _too_large(folder: Path, experiment: Experiment) -> set[str]:
    """Workloads that are not finished and that there is no room for any more; named, with what is kept of them."""
    records = store.read_trials(folder).records
    left = unfinished(experiment, records)
    absent = suites.too_large([each for each in experiment.workloads if each.name in left])
    for each in absent:
        kept = sum(record.workload == each.name for record in records)
        trials = f"{kept} finished trial{'' if kept == 1 else 's'}"
        print(
            f"freestone: {each.name} is left out: {each.reason}; its {trials} are kept, resume when there is room",
            file=sys.stderr,
        )
    return {each.name for each in absent}


def _measured(
    folder: Path,
    experiment: Experiment,
    held: str,
    markdown: Path | None,
    as_json: bool,
    left_out: Collection[str] = (),
) -> int:
    def show(experiment: Experiment, records: Sequence[TrialRecord], _: Summary) -> None:
        board = score(experiment, records, held)
        if markdown is not None:  # first: whoever reads along may close the pipe
            scoring.write_markdown(experiment, board, markdown)
        scoring.show(board, folder, as_json=as_json)

    return measuring.measure(folder, experiment, verb="bench", show=show, report=None, left_out=left_out)


def _every(
    suite: Sequence[str],
    wish: _Wish,
    subject: str | None,
    name: str | None,
    results: Path,
    markdown: Path | None,
    as_json: bool,
) -> int:
    """Every suite that comes along, each an experiment of its own, and one report of them all."""
    from freestone.reports import html  # late: the figures' libraries are large

    idles = wish.idle is not None or wish.idle_rounds is not None
    if len(suite) > 1 or name is not None or markdown is not None or as_json or wish.only or idles:
        raise SuiteError(f"'{EVERY}' stands alone: --name, --markdown, --json, --only and --idle are for single suites")
    leaders = {name: suites.load(name) for name in suites.leaders()}
    # Wrong for every suite is wrong before the first.
    wish.extent()
    settings = suites.settings(list(leaders.values()), wish.settings)
    wish.require(settings, measuring.chosen(wish.allocators, wish.baseline)[0])
    folders: list[Path] = []
    worst = int(ExitStatus.FINE)
    until = time.monotonic() + QUICK_EVERY_S
    for number, (each, loaded) in enumerate(leaders.items()):
        print(f"freestone: suite {each}", file=sys.stderr)
        share = (until - time.monotonic()) / (len(leaders) - number)
        try:
            experiment = wish.of(loaded, settings).within(share).experiment([each], each)
        except SuiteError as error:
            print(f"freestone: {error}", file=sys.stderr)
            worst = max(worst, ExitStatus.PARTLY_MEASURED)
            continue
        held = scoring.subject_of(experiment, subject)
        folder = measuring.begun(results, each, experiment)
        folders.append(folder)
        status = _measured(folder, experiment, held, None, as_json=False)
        worst = max(worst, status)
        if status == ExitStatus.STORE or status > 128:
            return status
    if not folders:
        raise SuiteError("no suite can be measured here")
    try:
        print(f"Report:  {html.write(folders, results / REPORT, paired_ratio)}")
    except html.ReportError as error:
        raise StoreError(str(error)) from error
    return worst


def _workloads(names: Sequence[str], selection: Selection) -> list[Workload]:
    if not names:
        raise SuiteError(
            f"no suite given; there are {', '.join([*suites.names(), EVERY])}, as in: freestone bench field"
        )
    workloads, absent = selection.workloads, list(selection.absent)
    try:
        suites.prepare(workloads)
    except SuiteError as error:
        reading = [each for each in workloads if suites.reads_inputs(each)]
        absent += [Absent(each.name, str(error)) for each in reading]
        workloads = [each for each in workloads if each not in reading]
    for each in absent:
        print(f"freestone: {each.name} is left out: {each.reason}", file=sys.stderr)
    if not workloads:
        raise SuiteError(f"none of the workloads of {' and '.join(names)} can be measured here")
    return workloads


def _list(names: Sequence[str], wish: _Wish) -> int:
    if not names:
        for name in suites.names():
            print(f"{name:<12} {suites.load(name).title}")
        return ExitStatus.FINE
    if EVERY in names:
        for name in suites.leaders():
            print(f"suite {name}:")
            _list([name], wish)
        return ExitStatus.FINE
    loaded = [suites.load(name) for name in names]
    selection = wish.selection(loaded)
    for workload in selection.workloads:
        print(workload.name + ("" if workload.counted else "  (not counted in the means)"))
    for absent in selection.absent:
        print(f"{absent.name}  (left out: {absent.reason})")
    for setting in suites.settings(loaded):
        told = " ".join(f"{name}={value}" for name, value in setting.environment.items())
        print(f"setting {setting.name}: {', '.join(setting.allocators)} with {told}")
    return ExitStatus.FINE
