"""Records to write and read."""

from __future__ import annotations

import pytest

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
    TrialRecord,
    Workload,
)


@pytest.fixture
def records() -> list[TrialRecord]:
    """One good record with everything in it, one failed, one INVALID."""
    good = TrialRecord(
        experiment="one",
        workload="wörk",
        configuration="glibc",
        round=0,
        position=0,
        started_at="2026-11-20T13:00:00+00:00",
        status="ok",
        exit_code=0,
        metrics=Metrics(
            wall_s=1.5,
            user_s=1.25,
            sys_s=0.125,
            peak_rss_kib=1000,
            counters={"instructions": 10**12},
            series=[Sample(at_s=0.5, rss_kib=900, processes=2)],
        ),
        output=Output(stdout_bytes=3, stdout_sha256="ab", stderr_tail="a\nb"),
        notes=["a note"],
        proof=Proof(
            valid=True,
            processes=[
                ProcessProof(
                    pid=1,
                    parent=0,
                    exe="/bin/true",
                    proved=True,
                    entries=[EntryPoint(symbol="malloc", file="/lib/libc.so.6", build_id="ab")],
                )
            ],
        ),
    )
    failed = good.model_copy(update={"round": 1, "status": "failed", "reason": "exit status 1", "metrics": None})
    invalid = good.model_copy(update={"round": 2, "status": "invalid", "proof": Proof(valid=False, reason="static")})
    return [good, failed, invalid]


@pytest.fixture
def experiment() -> Experiment:
    allocator = Allocator(name="glibc", title="glibc", file="/lib/libc.so.6", build_id="ab")
    return Experiment(
        id="one",
        created_at="2026-11-20T13:00:00+00:00",
        freestone_version="0",
        command_line=["freestone", "compare"],
        machine=Machine(id="here", facts={"cpu": "a", "cores_online": 2, "governor": None, "swap": False}),
        workloads=[Workload(name="wörk", command=["true"])],
        configurations=[Configuration(name="glibc", allocator=allocator)],
        baseline="glibc",
        rounds=3,
        seed=1,
    )
