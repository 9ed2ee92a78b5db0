"""``freestone compare --settings``: allocators with their settings race, and the Pareto front of them is shown."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from freestone.allocators import settings as catalogue
from freestone.analysis import pareto
from freestone.analysis.pareto import Goal
from freestone.commands import measurement, to_use
from freestone.experiments.plan import Extent, PlanError
from freestone.records.schema import Experiment, Summary, TrialRecord, Workload
from freestone.reports import pareto_table
from freestone.suites import Setting

ALL: Final = "all"
BUDGET_S: Final = 300.0


@Parameter(name="*")
@dataclass(frozen=True)
class SettingOptions:
    """Settings of the allocators that take part."""

    settings: Annotated[
        list[str] | None,
        Parameter(
            negative="",
            help="Also try settings: all, or names of them, with commas between. What another one really beats gets no "
            "more rounds. Default --time-budget: 300.",
        ),
    ] = None
    goal: Annotated[Goal | None, Parameter(help="With --settings: what it is for. Default: balanced.")] = None

    def extent(self, extent: Extent) -> Extent:
        """How much is measured, within the usual time where no extent was given."""
        if self.settings is None or extent.rounds is not None or extent.time_budget_s is not None:
            return extent
        return Extent(time_budget_s=BUDGET_S, timeout_s=extent.timeout_s, seed=extent.seed)

    def require_use(self, resumed: bool) -> None:
        """Raise PlanError for a goal without settings."""
        if self.goal is not None and self.settings is None and not resumed:
            raise PlanError("--goal is for --settings; give that too, or leave it out")

    def planned(
        self,
        name: str,
        workloads: Sequence[Workload],
        allocators: list[str] | None,
        baseline: str | None,
        extent: Extent,
    ) -> Experiment:
        """The experiment, as :func:`freestone.commands.measurement.planned` makes it, with the settings in it."""
        if self.settings is None:
            return measurement.planned(name, workloads, allocators, baseline, extent)
        if len(workloads) != 1:
            raise PlanError(f"--settings is for one program, not {len(workloads)}; leave it out")
        chosen = _chosen([word for each in self.settings for word in each.split(",") if word], allocators, baseline)
        made = measurement.planned(name, workloads, allocators, baseline, self.extent(extent), chosen)
        return made.model_copy(update={"racing": memory_of(workloads[0])})


NO_SETTINGS: Final = SettingOptions()


def memory_of(workload: Workload) -> str:
    """The metric that is a program's memory."""
    return "peak_rss_kib" if workload.service is None else "figure:rss_kib_loaded"


def _chosen(names: Sequence[str], allocators: list[str] | None, baseline: str | None) -> list[Setting]:
    """The settings of these names, each with the allocators that know it.

    Raises:
        AllocatorError, PlanError: there is no such setting or allocator.
    """
    compared, _ = measurement.chosen(allocators, baseline)
    plain = [each for each in compared if not each.environment]
    found = [
        Setting(name=name, allocators=[each.name], environment=dict(variables))
        for each in plain
        for name, variables in catalogue.known(each.allocator).items()
        if names == [ALL] or name in names
    ]
    known = {name for row in catalogue.SETTINGS.values() for name in row}
    for name in names if names != [ALL] else []:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are all, {', '.join(sorted(known))}"
            raise PlanError(f"--settings: there is no setting '{name}'; {hint}")
    missing = [name for name in names if names != [ALL] and name not in {each.name for each in found}]
    if missing:
        raise PlanError(f"--settings: no allocator that is compared knows {missing[0]}; compare one that does (-a)")
    if not found:
        raise PlanError("--settings: no allocator that is compared has settings that are known")
    return found


def _concluded(
    experiment: Experiment, records: Sequence[TrialRecord], summary: Summary, goal: Goal | None
) -> tuple[Workload, Goal, pareto.Conclusion]:
    (workload,) = experiment.workloads
    wanted = goal or "balanced"
    return workload, wanted, pareto.conclude(experiment, records, summary, workload, wanted)


def shown(
    experiment: Experiment, records: Sequence[TrialRecord], summary: Summary, goal: Goal | None, *, width: int
) -> str:
    """The front with its prices and the lines that use it; empty unless the configurations raced."""
    if experiment.racing is None:
        return ""
    workload, wanted, found = _concluded(experiment, records, summary, goal)
    return pareto_table.conclusion(found, wanted, experiment, brings_malloc=to_use.brings_malloc(workload), width=width)


def as_json(
    experiment: Experiment, records: Sequence[TrialRecord], summary: Summary, goal: Goal | None, folder: Path
) -> dict[str, object]:
    """The summary as JSON has it; with ``pareto`` if the configurations raced."""
    row: dict[str, object] = json.loads(summary.model_dump_json())
    if experiment.racing is None:
        return row
    _, wanted, found = _concluded(experiment, records, summary, goal)
    told = {
        "goal": wanted,
        "front": [each.configuration for each in found.front],
        "best": None if found.best is None else found.best.configuration,
        "level_with_best": [] if found.best is None else list(found.level),
        "out": dict(found.out),
        "records": str(folder),
    }
    return {**row, "pareto": told}
