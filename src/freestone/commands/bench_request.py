"""What was asked of ``freestone bench``, and the experiments that it makes of suites."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from freestone import suites
from freestone.commands import measurement
from freestone.experiments.plan import Extent, PlanError
from freestone.records import store
from freestone.records.schema import Configuration, Experiment, Workload
from freestone.suites import Absent, Selection, Setting, Suite, SuiteError

ALL: Final = "all"
"""Stands for every suite that comes along."""


@dataclass(frozen=True)
class BenchRequest:
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
    missing: bool = False
    """Whether allocators that were asked for are not here."""

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
        experiment = measurement.planned(called, workloads, self.allocators, self.baseline, extent, chosen)
        self.require(chosen, experiment.configurations)
        return experiment

    def require(self, settings: Sequence[Setting], compared: Sequence[Configuration]) -> None:
        """Settings that were asked for by name are measured, or refused.

        Raises:
            SuiteError: one is for allocators that are not compared.
        """
        names = {each.name for each in compared}
        for setting in settings if self.settings is not None and not self.missing else ():
            if not names & set(setting.allocators):
                who = " and ".join(setting.allocators)
                raise SuiteError(f"the setting {setting.name} is for {who}; compare that too, or leave the setting out")

    def require_same(self, names: Sequence[str], folder: Path) -> None:
        """What a folder holds already has to be of these suites.

        Raises:
            PlanError: it is not.
            StoreError: the folder cannot be read.
            SuiteError: there is no such suite.
        """
        asked = self.selection([suites.load(name) for name in names])
        known = {each.name for each in asked.workloads} | {each.name for each in asked.absent}
        others = [each.name for each in store.read_experiment(folder).workloads if each.name not in known]
        if others:
            raise PlanError(f"cannot resume {folder}: it measured other workloads ({', '.join(others[:3])})")

    def of_those(self, here: list[str] | None) -> BenchRequest:
        """With those of the allocators asked for that are here; a setting for another is then nobody's."""
        return replace(self, allocators=here, missing=True)

    def within(self, seconds: float) -> BenchRequest:
        """In so much time, where everything is to be quick and nobody said how often."""
        if not self.quick or self.rounds is not None or self.time_budget is not None:
            return self
        return replace(self, time_budget=max(1.0, seconds))

    def of(self, suite: Suite, chosen: Sequence[Setting]) -> BenchRequest:
        """With those of the chosen settings that this suite has, where some were asked for."""
        if self.settings is None:
            return self
        return replace(self, settings=[each.name for each in suite.setting if each in chosen] or [suites.NO_SETTING])


NOTHING_ASKED: Final = BenchRequest(None, None, None, [], False, None, None, None, None, None, None)
"""Of a folder that goes on with what it has."""


def require_some(names: Sequence[str]) -> None:
    """Raises SuiteError where no suite was given."""
    if not names:
        raise SuiteError(f"no suite given; there are {', '.join([*suites.names(), ALL])}, as in: freestone bench field")


def _workloads(names: Sequence[str], selection: Selection) -> list[Workload]:
    require_some(names)
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
