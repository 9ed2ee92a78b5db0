"""The remedies of a diagnosis: which are tried, in rounds beside the untouched program, and what came of them."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from freestone.allocators import configuration_for, discover, notation
from freestone.analysis.pareto import Goal
from freestone.commands import doctor_screening, measurement, terminal
from freestone.commands.status import ExitStatus, Stop
from freestone.commands.terminal import say
from freestone.doctor import chart as charts
from freestone.doctor import conditions, diagnosis, judgement, remedies, words
from freestone.doctor.chart import Chart
from freestone.doctor.conditions import Conditions
from freestone.doctor.finding import Finding
from freestone.doctor.observations import Cost, Observations
from freestone.doctor.remedies import Remedy
from freestone.doctor.verdict import LEAST_ROUNDS, Verdict
from freestone.experiments.plan import PlanError
from freestone.experiments.run import TRIAL_OVERHEAD_S
from freestone.records import store
from freestone.records.schema import Configuration, Experiment, Summary, TrialRecord, Workload
from freestone.records.store import StoreError
from freestone.reports import deployment, system_settings, table
from freestone.reports.shown import cells_of

MOST_REMEDIES = 8
MOST_SCREENED = 16
SLOWER = 1.3
"""What a trial is taken for, against one of the program alone: some remedies are slower, and a busy machine is."""

SIZES = {f"hugepages-{kib}kB": "always" for kib in (16, 64)}
"""The kernel's switches that remedies set."""


def tried(
    folder: Path, chart: Chart, found: Sequence[Finding], seen: Observations, goal: Goal, *, as_json: bool
) -> tuple[Verdict | None, list[tuple[Remedy, str]]]:
    """Compare remedies with the untouched program, and show what helped.

    Returns:
        What came of it, None where there is nothing to try; and what was left out, with why.

    Raises:
        Stop: the results cannot be written, it was interrupted, or what was begun cannot go on here.
    """
    try:
        experiment, by_name, left_out = _prepared(folder, chart, found, seen, goal)
    except PlanError as error:
        raise Stop(str(error), ExitStatus.USAGE) from error
    except StoreError as error:
        raise Stop(str(error), ExitStatus.STORE) from error
    if not as_json:
        print(words.left_out(left_out, width=terminal.width()), end="")
    if not by_name:
        if not as_json:
            print("\n".join(textwrap.wrap(f"{words.nothing_to_try(found, seen)}.", terminal.width())) + "\n")
        return None, left_out
    (workload,) = experiment.workloads
    held: list[Verdict] = []

    with Conditions() as made:

        def show(measured: Experiment, records: Sequence[TrialRecord], summary: Summary) -> None:
            so_far = charts.read(folder)
            given = {**so_far.given, **{each: so_far.given.get(each, 0) + more for each, more in made.given.items()}}
            so_far = so_far.model_copy(update={"given": given})
            charts.write(folder, so_far)
            judged = diagnosis.judge(summary, so_far, found, goal, records)
            held.append(judged)
            if not as_json:
                show_cures(measured, workload, summary, judged)

        status = measurement.measure(
            folder, experiment, verb="doctor", show=show, report=None, around=made.around, environment_told=True
        )
        for line in made.put_back:
            say(line)
    if status in (ExitStatus.STORE, ExitStatus.INTERRUPTED) or status > 128:
        raise Stop("remedies were not all tried", status)
    return (held[-1] if held else None), left_out


def _prepared(
    folder: Path, chart: Chart, found: Sequence[Finding], seen: Observations, goal: Goal
) -> tuple[Experiment, Mapping[str, Remedy], list[tuple[Remedy, str]]]:
    """The experiment with the remedies, in the folder; or the one that is there already."""
    kernel = refusal(chart)
    if chart.remedies is not None:
        if any(each.kernel for each in chart.remedies.values()) and kernel is not None:
            raise PlanError(f"cannot resume {folder}: {kernel}")
        if not chart.remedies:
            return chart.experiment, {}, chart.left_out
        return measurement.resumed(folder, []), chart.remedies, chart.left_out
    most = most_remedies(chart.experiment, seen)
    chosen, left_out = _chosen(chart, found, seen, goal, most, kernel)
    experiment = chart.experiment
    added = [*experiment.configurations, *(one for one, _ in chosen)]
    memory = diagnosis.memory_of(found, experiment.workloads[0])
    experiment = experiment.model_copy(update={"configurations": added, "racing": memory})
    by_name = {one.name: each for one, each in chosen}
    if chosen:
        store.write_experiment(folder, experiment)
    charts.write(folder, chart.model_copy(update={"remedies": by_name, "left_out": left_out}))
    return experiment, by_name, left_out


def _chosen(
    chart: Chart, found: Sequence[Finding], seen: Observations, goal: Goal, most: int, kernel: str | None
) -> tuple[list[tuple[Configuration, Remedy]], list[tuple[Remedy, str]]]:
    """What gets rounds, each as it is run; and what does not, with why not.

    Where there are more remedies than rounds have room for, each runs once before, if there is time for that.
    """
    (workload,) = chart.experiment.workloads
    wide = remedies.plan(found, seen, MOST_SCREENED, goal=goal, kernel=kernel)
    candidates = _configurations(wide.tried)
    budget_s = chart.experiment.time_budget_s
    if len(candidates) > most and budget_s is not None and seen.cost is not None and workload.service is None:
        fitting = candidates[: doctor_screening.runs_fitting(budget_s, _trial_s(seen.cost))]
        if len(fitting) > most:
            memory = diagnosis.memory_of(found, workload)
            taken, others = doctor_screening.screened(workload, seen.cost, fitting, goal, memory, most)
            by_remedy = {remedy: one for one, remedy in fitting}
            unrun = [(each, _no_room(most)) for _, each in candidates[len(fitting) :]]
            return [(by_remedy[each], each) for each in taken], [*wide.left_out, *others, *unrun]
    no_room = _no_room(most) if most < MOST_REMEDIES else None
    plan = remedies.plan(found, seen, most, goal=goal, kernel=kernel, no_room=no_room)
    return _configurations(plan.tried), list(plan.left_out)


def _no_room(most: int) -> str:
    return f"the time budget has room for {most}; a longer --time-budget tries more"


def refusal(chart: Chart) -> str | None:
    """Why the kernel's switches are not set, in one line; None where they may be and can."""
    obstacle = conditions.obstacle(SIZES)
    if obstacle is not None or chart.allow_system_settings:
        return obstacle
    return "--allow-system-settings tries it: the switch is of the whole machine, and is put back behind each run"


def show_cures(measured: Experiment, workload: Workload, summary: Summary, judged: Verdict) -> None:
    """Print the table of what was tried, the verdict, and the lines that put the best to use."""
    width, colour, plain = terminal.width(), terminal.has_colour(sys.stdout), terminal.is_ascii(sys.stdout)
    print(table.render(summary, width=width, colour=colour, ascii_only=plain))
    print(words.verdict(judged, width=width))
    if judged.best is not None:
        print(
            "\n".join(
                textwrap.wrap(judgement.price(cells_of(summary, workload.name)[judged.best.configuration]), width)
            )
        )
        best = next(each for each in measured.configurations if each.name == judged.best.configuration)
        lines = [*deployment.lines(workload, best), *deployment.more_lines(workload, best)]
        print("\n".join(["To use it:", *lines, ""]))


def most_remedies(experiment: Experiment, seen: Observations) -> int:
    """How many remedies can be tried in enough rounds, each of which has the untouched program twice.

    Remedies are dropped before rounds, down to one. Each is also run once before the first round, without a clock.
    """
    if experiment.time_budget_s is None or seen.cost is None:
        return MOST_REMEDIES
    trials = int(experiment.time_budget_s / (SLOWER * _trial_s(seen.cost)))
    # LEAST_ROUNDS * (2 + n) trials and 1 + n before them.
    fitting = (trials - 2 * LEAST_ROUNDS - 1) // (LEAST_ROUNDS + 1)
    return max(1, min(MOST_REMEDIES, fitting))


def _trial_s(cost: Cost) -> float:
    return cost.trial_s or cost.wall_s + TRIAL_OVERHEAD_S


def _configurations(chosen: Sequence[Remedy]) -> list[tuple[Configuration, Remedy]]:
    """Those that are here, each with its remedy."""
    here = {each.name: each for each in discover() if each.available}
    found = []
    for each in chosen:
        if each.allocator in here:
            settings: Mapping[str, str] = dict(each.settings)
            plain = configuration_for(here[each.allocator], environment=settings)
            made = plain.model_copy(update={"kernel": dict(each.kernel), "huge_pages_off": each.huge_pages_off})
            name = notation.write(each.allocator, settings) + system_settings.suffix(made)
            found.append((made.model_copy(update={"name": name}), each))
    return found
