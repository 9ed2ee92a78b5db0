"""Puts an experiment together from what the user asked for, before anything runs."""

from __future__ import annotations

import difflib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import freestone
from freestone.experiments.schedule import DEFAULT_ROUNDS, MOST_ROUNDS_IN_BUDGET
from freestone.records.schema import MOST_ROUNDS, Configuration, Environment, Experiment, Machine, Workload


class PlanError(ValueError):
    """What was asked for cannot be run; the message is one line."""


@dataclass(frozen=True)
class Extent:
    """How much is measured. ``rounds`` None: the default, or as many as fit ``time_budget_s``.

    Raises:
        PlanError: a number that leaves nothing to measure.
    """

    rounds: int | None = None
    time_budget_s: float | None = None
    timeout_s: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.rounds is not None and self.rounds < 1:
            raise PlanError(f"{self.rounds} rounds measure nothing; --rounds takes 1 or more")
        if self.rounds is not None and self.rounds > MOST_ROUNDS:
            raise PlanError(f"{self.rounds} rounds never end; --rounds takes {MOST_ROUNDS} at most")
        if self.seed is not None and self.seed < 0:
            raise PlanError("--seed takes a number from 0 up")


def new_experiment(
    *,
    name: str,
    workloads: Sequence[Workload],
    configurations: Sequence[Configuration],
    baseline: str,
    extent: Extent,
    machine: Machine,
    command_line: Sequence[str],
    now: datetime,
    environment: Environment | None = None,
) -> Experiment:
    """The head of a new experiment.

    Raises:
        PlanError: the baseline is none of the configurations, or two configurations or workloads have one name.
    """
    if not workloads:
        raise PlanError("there is no workload to measure")
    called = [workload.name for workload in workloads]
    if len(set(called)) < len(called):
        raise PlanError(f"two workloads are named '{max(called, key=called.count)}'")
    names = [configuration.name for configuration in configurations]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise PlanError(f"two configurations are named '{sorted(twice)[0]}'")
    if baseline not in names:
        near = difflib.get_close_matches(baseline, names, n=1)
        raise PlanError(
            f"the baseline '{baseline}' is not compared; "
            + (f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}")
        )
    rounds = extent.rounds or (DEFAULT_ROUNDS if extent.time_budget_s is None else MOST_ROUNDS_IN_BUDGET)
    return Experiment(
        id=f"{now:%Y%m%dT%H%M%SZ}-{name}-{secrets.token_hex(4)}",
        created_at=now.isoformat(timespec="seconds"),
        freestone_version=freestone.__version__,
        command_line=list(command_line),
        machine=machine,
        workloads=list(workloads),
        configurations=list(configurations),
        baseline=baseline,
        rounds=rounds,
        seed=secrets.randbits(32) if extent.seed is None else extent.seed,
        timeout_s=extent.timeout_s,
        time_budget_s=extent.time_budget_s,
        environment=environment,
    )
