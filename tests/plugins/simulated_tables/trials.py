"""Made-up trials of a whole experiment, whose truth is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from freestone.records.schema import (
    Allocator,
    Configuration,
    Experiment,
    Machine,
    Metrics,
    Proof,
    TrialRecord,
    Workload,
)
from simulated_tables import noise

BASELINE = "baseline"
TIMES = ("wall_s", "user_s", "sys_s")
MEMORY = ("peak_rss_kib", "tree_peak_rss_kib", "end_rss_kib", "minor_faults", "voluntary_switches")


@dataclass(frozen=True)
class Truth:
    """What an experiment is made of: configuration -> factor on its times; the baseline's is 1."""

    factors: Mapping[str, float]
    workloads: int = 1

    def of(self, configuration: str, metric: str) -> float:
        """The true ratio to the baseline."""
        return self.factors.get(configuration, 1.0) if metric in TIMES else 1.0


def experiment(truth: Truth, rounds: int) -> Experiment:
    """The head of the experiment."""
    names = [BASELINE, *truth.factors]
    return Experiment(
        id="simulated",
        created_at="2026-01-01T00:00:00Z",
        freestone_version="0",
        command_line=[],
        machine=Machine(id="none"),
        workloads=[Workload(name=f"w{number}", command=["true"]) for number in range(truth.workloads)],
        configurations=[Configuration(name=name, allocator=Allocator(name=name, title=name)) for name in names],
        baseline=BASELINE,
        rounds=rounds,
        seed=1,
    )


def draw(truth: Truth, kind: str, random: np.random.Generator, rounds: int) -> list[TrialRecord]:
    """Every trial of every round, the baseline twice in each.

    Args:
        kind: of the noise of times (:data:`noise.KINDS`); memory and faults are counts that hardly differ.
    """
    runs = [(BASELINE, 0), (BASELINE, 1), *((name, 0) for name in truth.factors)]
    return [
        record
        for workload in range(truth.workloads)
        for record in _workload(truth, f"w{workload}", kind, random, runs, rounds)
    ]


def _workload(
    truth: Truth,
    workload: str,
    kind: str,
    random: np.random.Generator,
    runs: Sequence[tuple[str, int]],
    rounds: int,
) -> list[TrialRecord]:
    wall = np.exp(noise.rounds(kind, random, rounds, len(runs)))
    # The program's own time goes along with the wall's, the kernel's goes its own way.
    user = 0.9 * wall * np.exp(random.normal(0, 0.002, wall.shape))
    system = 0.1 * np.exp(noise.rounds(kind, random, rounds, len(runs)))
    times = dict(zip(TIMES, (wall, user, system), strict=True))
    counts = {name: np.exp(noise.rounds("counts", random, rounds, len(runs))) for name in MEMORY}
    # Copied and not made anew: a campaign has a million trials, and the schema need not check each.
    bare = Metrics(wall_s=1.0, user_s=1.0, sys_s=1.0, major_faults=0)
    one = TrialRecord(
        experiment="simulated",
        workload=workload,
        configuration=BASELINE,
        round=0,
        position=0,
        started_at="",
        status="ok",
        proof=Proof(valid=True),
    )
    records = []
    for number in range(rounds):
        for place, (name, repeat) in enumerate(runs):
            values = {metric: float(found[number, place]) * truth.of(name, metric) for metric, found in times.items()}
            values |= {metric: float(found[number, place]) for metric, found in counts.items()}
            update = {"configuration": name, "round": number, "position": place, "repeat": repeat}
            records.append(one.model_copy(update=update | {"metrics": bare.model_copy(update=values)}))
    return records
