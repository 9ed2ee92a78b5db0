"""An order that many machines have carried out, written by the records' own writers."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import freestone
from freestone.analysis.rounds import Slot, plan_round
from freestone.records import store
from freestone.records.schema import (
    Allocator,
    Configuration,
    EntryPoint,
    Experiment,
    Metrics,
    Order,
    Output,
    Place,
    ProcessProof,
    Proof,
    Sample,
    TrialRecord,
    Workload,
)
from simulated_fleet import machines
from simulated_fleet.machines import BASELINE, MachineKind

ROUNDS: Final = 10
SAMPLES: Final = 40
PEAK_KIB: Final = 180_000
NOW: Final = datetime(2026, 11, 26, 12, tzinfo=UTC)


def write(results: Path, count: int, seed: int, workloads: int = 1, rounds: int = ROUNDS) -> Path:
    """A folder with an order of so many machines, and what each has measured.

    Args:
        results: where its folder is made.
        count: of machines.
        seed: of what is drawn.
        workloads: of the suite that they have measured; 1 for one program.
        rounds: how often each has.
    """
    folder = store.create_folder(results, f"fleet-{count}", NOW)
    hosts = [f"{machines.of_place(number).name}-{number:04}" for number in range(count)]
    words = ["bench", "fleet"] if workloads > 1 else ["compare", "--", "./solve"]
    order = Order(
        id=folder.name,
        created_at=NOW.isoformat(timespec="seconds"),
        freestone_version=freestone.__version__,
        words=words,
        places=[Place(name=host, engine="ssh", address=host) for host in hosts],
    )
    store.write_order(folder, order)
    for number, host in enumerate(hosts):
        _machine(
            folder / host, machines.of_place(number), host, random.Random(f"{seed}/{host}"), words, workloads, rounds
        )
    return folder


def _machine(
    folder: Path, kind: MachineKind, host: str, source: random.Random, words: list[str], workloads: int, rounds: int
) -> None:
    names = [BASELINE, *kind.time]
    experiment = Experiment(
        id=f"fleet-{host}",
        created_at=NOW.isoformat(timespec="seconds"),
        freestone_version=freestone.__version__,
        command_line=["freestone", *words],
        machine=machines.machine(kind, host),
        workloads=[
            Workload(name=f"solve-{number}" if workloads > 1 else "solve", command=["./solve", str(number)])
            for number in range(workloads)
        ],
        configurations=[
            Configuration(
                name=name, allocator=Allocator(name=name, title=name, file=f"/usr/lib/lib{name}.so", build_id="0" * 40)
            )
            for name in names
        ],
        baseline=BASELINE,
        rounds=rounds,
        seed=1,
    )
    store.make_folder(folder)
    store.write_experiment(folder, experiment)
    spread = machines.spread(source)
    with store.TrialLog(folder) as log:
        for number in range(rounds):
            for record in _round(experiment, kind, number, source, spread):
                log.append(record)


def _round(
    experiment: Experiment, kind: MachineKind, number: int, source: random.Random, spread: float
) -> Iterator[TrialRecord]:
    drift = math.exp(source.gauss(0, spread))  # meets all of a round alike
    for slot in plan_round(experiment, number):
        yield _trial(experiment.id, kind, slot, source, drift, spread)


def _trial(
    experiment: str, kind: MachineKind, slot: Slot, source: random.Random, drift: float, spread: float
) -> TrialRecord:
    name = slot.configuration
    wall = kind.seconds * kind.time.get(name, 1.0) * drift * math.exp(source.gauss(0, spread))
    peak = int(PEAK_KIB * kind.memory.get(name, 1.0) * math.exp(source.gauss(0, 0.002)))
    file = f"/usr/lib/lib{name}.so"
    return TrialRecord(
        experiment=experiment,
        workload=slot.workload,
        configuration=name,
        round=slot.round,
        position=slot.position,
        repeat=slot.repeat,
        started_at=NOW.isoformat(timespec="seconds"),
        status="ok",
        exit_code=0,
        metrics=Metrics(
            wall_s=wall,
            user_s=wall * 0.9,
            sys_s=wall * 0.08,
            peak_rss_kib=peak,
            tree_peak_rss_kib=peak,
            end_rss_kib=peak // 2,
            minor_faults=peak // 4,
            major_faults=0,
            voluntary_switches=source.randint(2, 6),
            involuntary_switches=source.randint(20, 60),
            series=[
                Sample(at_s=wall * step / SAMPLES, rss_kib=peak * (step + 1) // SAMPLES, processes=1)
                for step in range(SAMPLES)
            ],
        ),
        output=Output(stdout_bytes=64, stdout_sha256="0" * 64),
        proof=Proof(
            valid=True,
            census="perf",
            images=1,
            processes=[
                ProcessProof(
                    pid=100,
                    parent=1,
                    exe="/home/user/solve",
                    proved=True,
                    entries=[
                        EntryPoint(symbol=symbol, file=file) for symbol in ("malloc", "calloc", "realloc", "free")
                    ],
                )
            ],
        ),
    )
