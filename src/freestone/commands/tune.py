"""``freestone tune``: a search over allocators and their settings, and what of it is confirmed."""

from __future__ import annotations

import json as json_format
import math
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from freestone import machine
from freestone.allocators import SYSTEM, AllocatorError
from freestone.commands import measurement, one_folder, program, terminal, to_use
from freestone.commands.acceptance import STRICT, Acceptance
from freestone.commands.durations import Budget
from freestone.commands.options import Allocators, Results, Resume, Seed, Timeout
from freestone.commands.progress import Progress
from freestone.commands.service_options import NO_SERVICE, ServiceOptions
from freestone.commands.status import ExitStatus, Stop
from freestone.commands.terminal import say
from freestone.doctor.goal import Goal
from freestone.experiments import Interruption, Outcome
from freestone.experiments.plan import Extent, PlanError
from freestone.native import NativePartMissing
from freestone.records import store
from freestone.records.schema import Allocator, Experiment, Summary, TrialRecord, Workload
from freestone.records.store import StoreError
from freestone.reports import table
from freestone.trials import LauncherBroken
from freestone.tuning import kept, outcome, proposals, space, words
from freestone.tuning.choice import Choice
from freestone.tuning.kept import Tuning
from freestone.tuning.search import Search
from freestone.tuning.standing import Standing

BUDGET_S = 300.0


def tune(
    *command: Annotated[str, Parameter(help="The program and its arguments, after --.")],
    time_budget: Annotated[Budget, Parameter(help="Seconds, or as in 10m, for all of it. Default: 300.")] = None,
    goal: Annotated[Goal | None, Parameter(help="What it is for. Default: balanced.")] = None,
    allocators: Allocators = None,
    env: Annotated[
        list[str] | None, Parameter(negative="", help="NAME=VALUE for the program's environment. May be given again.")
    ] = None,
    timeout: Timeout = None,
    seed: Seed = None,
    results: Results = Path("results"),
    resume: Resume = None,
    json: Annotated[bool, Parameter(negative="", help="Print what came of it as JSON.")] = False,
    service: ServiceOptions = NO_SERVICE,
    acceptance: Acceptance = STRICT,
) -> int:
    """Search allocators and their settings for the best for a program in time and memory.

    It tries what is here and what it can be set to, a few at a time, in rounds beside the untouched program. What
    another one really beats is out, what may be best gets more rounds, and Optuna proposes what to try next. The
    finalists are confirmed in rounds that did not choose them.

    Examples:

        freestone tune -- ./my-program its arguments
        freestone tune --time-budget 600 --goal memory -- ./my-program
        freestone tune -a glibc,jemalloc -- ./my-program
        freestone tune --resume results/20261126T120000Z-tune-my-program

    Exit status: 0 all finalists measured, also where nothing was told apart; 2 wrong use, 3 nothing could be measured,
    4 a finalist failed, 5 results could not be written, 126 or 127 the program cannot be executed or found, 130
    interrupted.
    """
    lacking = proposals.missing()
    if lacking is not None:
        raise Stop(lacking, ExitStatus.USAGE)
    given = {
        "--time-budget": time_budget,
        "--goal": goal,
        "-a": allocators,
        "--env": env or None,
        "--timeout": timeout,
        "--seed": seed,
        **service.given(),
        **acceptance.given(),
    }
    try:
        if resume is not None:
            folder = one_folder.required(resume)
            tuning = _resumed(folder, command, [option for option, value in given.items() if value is not None])
        else:
            extent = Extent(
                time_budget_s=BUDGET_S if time_budget is None else time_budget, timeout_s=timeout, seed=seed
            )
            _, plain = program.found(command, env or [], verb="tune")
            workload = service.applied(acceptance.applied(plain))
            tuning = _planned(workload, allocators, extent, goal or "balanced")
            created_at = datetime.fromisoformat(tuning.head.created_at)
            folder = store.create_folder(results, f"tune-{workload.name}", created_at)
            kept.write_tuning(folder, tuning)
    except (AllocatorError, PlanError) as error:
        raise Stop(str(error), ExitStatus.USAGE) from error
    except StoreError as error:
        raise Stop(str(error), ExitStatus.STORE) from error
    return _Tuned(folder, tuning, as_json=json).run()


def _planned(workload: Workload, allocators: Sequence[str] | None, extent: Extent, goal: Goal) -> Tuning:
    head = measurement.planned(workload.name, [workload], allocators, SYSTEM, extent)
    memory = "peak_rss_kib" if workload.service is None else "figure:rss_kib_loaded"
    return Tuning(goal=goal, memory=memory, head=head)


def _resumed(folder: Path, command: Sequence[str], given: Sequence[str]) -> Tuning:
    """The search of a folder, fit to go on here and now.

    Raises:
        PlanError: it would be another one.
        StoreError: the folder is none of a search.
        Stop: a program is no longer there, or nothing can be proved where this runs.
    """
    tuning = kept.read_tuning(folder)
    (workload,) = tuning.head.workloads
    if command and list(command) != workload.command:
        raise PlanError(f"cannot resume {folder}: it tuned another command; leave the program out")
    if given:
        raise PlanError(f"--resume goes on with the settings of {folder}; leave out {', '.join(given)}")
    begun = [each.folder for each in kept.batches(folder)]
    for place in [*begun, *([folder] if (folder / store.EXPERIMENT_FILE).exists() else [])]:
        measurement.resumed(place, [])
    return tuning


class _Tuned:
    """A search that is going on, from its head to what is printed."""

    def __init__(self, folder: Path, tuning: Tuning, *, as_json: bool) -> None:
        self._folder = folder
        self._tuning = tuning
        self._as_json = as_json
        (self._workload,) = tuning.head.workloads
        self._brings_malloc = to_use.brings_malloc(self._workload)
        allocators = {each.allocator.name: each.allocator for each in tuning.head.configurations}
        self._choice = Choice(tuning, _room(allocators), allocators)

    def run(self) -> int:
        """Search, confirm, show.

        Raises:
            Stop: interrupted, or something does not work.
        """
        if self._brings_malloc:
            say(f"the program brings a malloc of its own; {SYSTEM} stands in its place wherever it is called untouched")
        search, standing = self._searched()
        if not (self._folder / store.EXPERIMENT_FILE).exists():
            why = standing.broken or (None if len(standing.race) > 1 else "no configuration had a good trial")
            if why is not None:
                if self._as_json:
                    self._print_json(None, standing, None)
                else:
                    print(words.searched(standing, 0, width=terminal.width()), end="")
                say(f"nothing could be measured: {why}")
                return ExitStatus.NOTHING_MEASURED
            self._begin_finals(search, standing)
        experiment = store.read_experiment(self._folder)

        def show(_: Experiment, records: Sequence[TrialRecord], summary: Summary) -> None:
            self._show(experiment, standing, records, summary)

        return measurement.measure(self._folder, experiment, verb="tune", show=show, report=None)

    def _searched(self) -> tuple[Search, Standing]:
        for batch in kept.batches(self._folder):
            damage = store.damage_line(batch.folder, store.read_trials(batch.folder).damage)
            if damage:
                say(damage)
        progress = Progress(sys.stderr, servers=[self._workload.name] if self._workload.service is not None else [])
        with Interruption() as stop:
            try:
                search = Search(
                    self._folder,
                    self._tuning,
                    self._choice,
                    tell=progress.line,
                    on_event=progress,
                    stop=stop,
                    changed=lambda: machine.changed(self._tuning.head.machine),
                )
                ended = Outcome.COMPLETE if (self._folder / store.EXPERIMENT_FILE).exists() else search.run()
            except StoreError as error:
                raise Stop(f"{error}; every record is kept{self._go_on()}", ExitStatus.STORE) from error
            except (LauncherBroken, NativePartMissing) as error:
                raise Stop(str(error), ExitStatus.NOTHING_MEASURED) from error
            finally:
                progress.clear()
        if ended is Outcome.INTERRUPTED:
            kept_trials = f"{search.trials} finished trial{'' if search.trials == 1 else 's'} kept"
            status = 128 + stop.signal if stop.signal else ExitStatus.INTERRUPTED
            raise Stop(f"interrupted; {kept_trials}{self._go_on()}", status)
        return search, search.standing

    def _begin_finals(self, search: Search, standing: Standing) -> None:
        """Write the head of the finalists' rounds: with it the search is over, and its finalists are settled."""
        head = self._tuning.head
        chosen = [
            standing.configurations[head.baseline],
            *(standing.configurations[name] for name in search.finalists()),
        ]
        left_s = max(1.0, search.left_s)
        experiment = head.model_copy(update={"configurations": chosen, "time_budget_s": left_s})
        try:
            store.write_experiment(self._folder, experiment)
        except StoreError as error:
            raise Stop(str(error), ExitStatus.STORE) from error
        if search.wanting_s is not None:
            enough_s = 10 * math.ceil(search.wanting_s / 10)
            say(f"too short to try any setting: --time-budget {enough_s} has room for what the search begins with")
        say(f"confirming {len(chosen) - 1} of {len(standing.configurations) - 1} in new rounds")

    def _show(
        self, experiment: Experiment, standing: Standing, records: Sequence[TrialRecord], summary: Summary
    ) -> None:
        found = outcome.conclude(self._tuning, experiment, records, summary)
        if self._as_json:
            self._print_json(found, standing, summary)
            return
        width, colour, plain = terminal.width(), terminal.has_colour(sys.stdout), terminal.is_ascii(sys.stdout)
        print(table.render(summary, width=width, colour=colour, ascii_only=plain))
        print(words.searched(standing, len(experiment.configurations) - 1, width=width))
        print(
            words.conclusion(
                found,
                self._tuning.goal,
                experiment.baseline,
                self._workload,
                standing.configurations,
                brings_malloc=self._brings_malloc,
                width=width,
            )
        )
        print(f"Records: {self._folder}")

    def _print_json(self, found: outcome.Conclusion | None, standing: Standing, summary: Summary | None) -> None:
        told = words.as_json(
            found, standing, summary, self._tuning.goal, self._workload, brings_malloc=self._brings_malloc
        )
        print(json_format.dumps({**told, "records": str(self._folder)}, indent=2, ensure_ascii=False))

    def _go_on(self) -> str:
        return f", go on with: {program.tool_as_typed()} tune --resume {self._folder}"


def _room(allocators: Mapping[str, Allocator]) -> space.Room:
    """What each allocator can be set to; one whose file cannot be read has the settings that need no look into it."""
    found = {}
    for name, allocator in allocators.items():
        content = b""
        with suppress(OSError):
            content = Path(allocator.file or "").read_bytes()
        found[name] = space.knobs(allocator, content)
    return found
