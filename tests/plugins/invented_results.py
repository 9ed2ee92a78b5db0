"""A realistic experiment made up from a seed: six allocators, ten rounds, one cell INVALID, one failed."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from invented_summaries import summarise

from freestone.records import store
from freestone.records.schema import (
    Allocator,
    Configuration,
    EntryPoint,
    Experiment,
    Machine,
    Metrics,
    Output,
    ProcessProof,
    Proof,
    Sample,
    Summary,
    TrialRecord,
    Workload,
)

# name, title, version, wall s, system s, peak KiB, end KiB, minor faults
ARMS = (
    ("glibc", "glibc", "2.36", 2.84, 0.21, 182_000, 121_000, 48_900),
    ("freestone", "libfreestone", "0.1.0", 2.41, 0.12, 161_000, 74_000, 31_200),
    ("mimalloc", "mimalloc", "2.0.9", 2.55, 0.19, 198_000, 171_000, 44_100),
    ("jemalloc", "jemalloc", "5.3.0", 2.86, 0.24, 176_000, 95_000, 61_500),
    ("tcmalloc", "tcmalloc", "2.10", 2.62, 0.15, 189_000, 188_000, 29_800),
    ("tbb", "TBB malloc", "2021.8.0", 2.71, 0.22, 231_000, 205_000, 52_300),
)
INVALID = "jemalloc"
FAILED = "tbb"
ROUNDS = 10


@dataclass(frozen=True)
class Results:
    """What a results folder holds, in memory."""

    experiment: Experiment
    records: list[TrialRecord]
    summary: Summary

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True)
        store.write_experiment(folder, self.experiment)
        with store.TrialLog(folder) as log:
            for record in self.records:
                log.append(record)
        store.write_summary(folder, self.summary)
        return folder


def make_results(
    workloads: tuple[str, ...] = ("json-sqlite",), *, seed: int = 1, machine: str = "AMD EPYC 7B13", bad: bool = True
) -> Results:
    source = random.Random(seed)
    experiment = Experiment(
        id="20261120T131500Z-json-sqlite",
        created_at="2026-11-20T13:15:00Z",
        freestone_version="0.1.0",
        command_line=["freestone", "compare", "-n", str(ROUNDS), "--", "python3", "workloads/json_sqlite.py", "a b"],
        machine=Machine(
            id=hashlib.sha256(machine.encode()).hexdigest()[:16],
            facts={
                "cpu": machine,
                "cores": 2,
                "l2_bytes": 524288,
                "governor": None,
                "turbo": True,
                "kernel": "6.18.44",
                "page_size": 4096,
                "thp": "madvise",
                "overcommit": 0,
                "libc": "glibc 2.36",
            },
        ),
        workloads=[Workload(name=name, command=["python3", f"{name}.py"]) for name in workloads],
        configurations=[
            Configuration(
                name=name,
                allocator=Allocator(
                    name=name,
                    title=title,
                    version=version,
                    file=f"/usr/lib/x86_64-linux-gnu/lib{name}.so",
                    build_id=hashlib.sha1(name.encode()).hexdigest(),
                    preload=[f"/usr/lib/x86_64-linux-gnu/lib{name}.so"],
                    origin="system libc" if name == "glibc" else f"package lib{name}",
                ),
            )
            for name, title, version, *_ in ARMS
        ],
        baseline="glibc",
        rounds=ROUNDS,
        seed=seed,
    )
    records = [record for name in workloads for record in _trials(experiment, name, source, bad)]
    return Results(experiment, records, summarise(experiment, records))


def make_family(
    name: str, command: Sequence[str], values: Mapping[str, Sequence[str]], *, operations: float
) -> Results:
    """Workloads that differ in one parameter, in braces in name and command; each trial says how much it did."""
    ((parameter, several),) = values.items()
    each_with = [{parameter: value} for value in several]
    workloads = [
        Workload(
            name=name.format(**filled),
            command=[word.format(**filled) for word in command],
            parameters=filled,
            template=name,
        )
        for filled in each_with
    ]
    made = make_results(tuple(each.name for each in workloads))
    records = [record.model_copy(update={"figures": {"operations": operations}}) for record in made.records]
    return Results(made.experiment.model_copy(update={"workloads": workloads}), records, made.summary)


def _trials(experiment: Experiment, workload: str, source: random.Random, bad: bool) -> Iterator[TrialRecord]:
    for number in range(ROUNDS):
        drift = 1 + 0.01 * math.sin(number) + source.gauss(0, 0.004)
        order = [(arm, 0) for arm in ARMS] + [(ARMS[0], 1)]
        source.shuffle(order)
        for position, (arm, repeat) in enumerate(order):
            yield _trial(experiment, workload, arm, number, position, repeat, drift, source, bad)


def _trial(
    experiment: Experiment,
    workload: str,
    arm: tuple[str, str, str, float, float, int, int, int],
    number: int,
    position: int,
    repeat: int,
    drift: float,
    source: random.Random,
    bad: bool,
) -> TrialRecord:
    name, _, _, wall, system, peak, end, faults = arm
    file = f"/usr/lib/x86_64-linux-gnu/lib{name}.so"
    wall *= drift * (1 + abs(source.gauss(0, 0.006)))
    system *= 1 + source.gauss(0, 0.04)
    peak = int(peak * (1 + source.gauss(0, 0.003)))
    end = int(end * (1 + source.gauss(0, 0.005)))
    metrics = Metrics(
        wall_s=wall,
        user_s=wall * 0.98 - system,
        sys_s=system,
        peak_rss_kib=peak,
        tree_peak_rss_kib=peak + 2100,
        end_rss_kib=end,
        minor_faults=int(faults * (1 + source.gauss(0, 0.01))),
        major_faults=0,
        voluntary_switches=source.randint(2, 6),
        involuntary_switches=source.randint(20, 60),
        counters={"page-faults": int(faults * 0.97)},
        series=list(_series(wall, peak, end, source)),
    )
    status, reason = "ok", None
    if bad and name == INVALID:
        status = "invalid"
        reason = "malloc of python3 was served by /usr/lib/x86_64-linux-gnu/libc.so.6, not by jemalloc: own malloc"
    if bad and name == FAILED:
        status, reason = "failed", "killed by SIGSEGV (signal 11) after 0.3 s"
    return TrialRecord(
        experiment=experiment.id,
        workload=workload,
        configuration=name,
        round=number,
        position=position,
        repeat=repeat,
        started_at=f"2026-11-20T13:{15 + number:02d}:{position * 5:02d}Z",
        status=status,
        reason=reason,
        exit_code=None if status == "failed" else 0,
        signal=11 if status == "failed" else None,
        metrics=metrics,
        output=Output(stdout_bytes=64, stdout_sha256="0" * 64),
        proof=Proof(
            valid=status != "invalid",
            reason=reason if status == "invalid" else None,
            census="perf",
            processes=[
                ProcessProof(
                    pid=100,
                    parent=1,
                    exe="/usr/bin/python3.11",
                    proved=status != "invalid",
                    entries=[
                        EntryPoint(symbol=symbol, file=file) for symbol in ("malloc", "calloc", "realloc", "free")
                    ],
                )
            ],
        ),
    )


def _series(wall: float, peak: int, end: int, source: random.Random) -> Iterator[Sample]:
    steps = 140
    for step in range(steps + 1):
        share = step / steps
        level = peak * min(1.0, share / 0.35) if share < 0.8 else peak - (peak - end) * (share - 0.8) / 0.2
        level *= 1 - 0.06 * (step % 9) / 9 + source.gauss(0, 0.004)
        yield Sample(at_s=share * wall, rss_kib=max(2000, int(min(level, peak))), processes=1)
