"""Makes a record of one run under the clock, and a rehearsal of one without."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from freestone import native
from freestone.records.schema import Asked, Configuration, Proof, Status, TrialRecord, Workload
from freestone.trials import load_figures, meters, service, witness
from freestone.trials.evidence import Rehearsed
from freestone.trials.execution import COUNTER, execute
from freestone.trials.launch import CensusMethod, permissions


@dataclass(frozen=True)
class Identity:
    """Which trial of which experiment this is."""

    experiment: str
    round: int = 0
    position: int = 0
    repeat: int = 0


@dataclass(frozen=True)
class Rehearsal:
    """What an untimed run has shown of one configuration of one workload.

    ``status`` and ``reason`` say what became of the program itself, as in a record.
    """

    status: Status
    reason: str | None
    proof: Proof
    rehearsed: Rehearsed
    asked: Asked | None = None
    """What the program asked of malloc, where that was counted."""

    @property
    def never_ready(self) -> bool:
        """Whether a server lived on and did not answer in its time."""
        return self.reason is not None and "the server was not ready after " in self.reason

    @property
    def told_nothing(self) -> bool:
        """Whether the load of a server ran to its end and told no figures."""
        return self.reason is not None and f"{service.NO_MEASUREMENT}{load_figures.NO_FIGURES}" in self.reason


def run_trial(
    workload: Workload,
    configuration: Configuration,
    *,
    identity: Identity,
    timeout_s: float | None,
    scratch: Path,
    rehearsal: Rehearsal | None = None,
    watch: service.Watch = lambda moment: None,
    asked: Asked | None = None,
) -> TrialRecord:
    """Run a workload once under a configuration, under the clock.

    Whatever the program does ends up in the record: ``status`` is ok only for exit status 0 with a valid proof.

    Args:
        workload: what to run.
        configuration: the allocator under test, and its settings.
        identity: goes into the record.
        timeout_s: seconds until the tree is ended; None for no limit.
        scratch: an existing folder for captured output; left as it was found.
        rehearsal: of the same configuration and workload; needed where the kernel refuses a census inside the trial.
        watch: told now and then how a server is.
        asked: what the program asks of malloc, where a rehearsal has counted it; goes into the record.

    Raises:
        LauncherBroken, NativePartMissing: the lab's own parts do not work.
        KeyboardInterrupt: as it comes; the tree is ended first.
    """
    started_at = datetime.now(UTC).isoformat(timespec="microseconds")
    method: CensusMethod = "perf" if permissions().perf else "none"
    rehearsed = rehearsal.rehearsed if rehearsal else None
    run = execute(workload, configuration, timeout_s, scratch, method, rehearsed, watch)
    metrics, status, reason = None, run.status, run.reason
    if run.reading.pid is not None:
        metrics = meters.read(run.reading, run.testimonies, workload.survivors, workload.rest_s, run.unwaited)
        untrue = meters.contradiction(metrics, run.testimonies, len(os.sched_getaffinity(0)))
        if status == "ok" and untrue is not None:
            status, reason = "failed", untrue
    return TrialRecord(
        experiment=identity.experiment,
        workload=workload.name,
        configuration=configuration.name,
        round=identity.round,
        position=identity.position,
        repeat=identity.repeat,
        started_at=started_at,
        status=status,
        reason=reason,
        exit_code=run.reading.exit_code,
        signal=run.reading.signal,
        metrics=metrics,
        output=run.output,
        figures=run.figures,
        notes=run.notes,
        asked=asked,
        survivors=[one.program for one in run.reading.survivors],
        stage_output=run.stage_output,
        steered=dict(run.steered),
        proof=run.verdict.proof,
    )


def rehearse(
    workload: Workload, configuration: Configuration, *, timeout_s: float | None, scratch: Path, counting: bool = False
) -> Rehearsal:
    """Run a workload once without a clock: to warm up, and to take the census where a timed trial may not take it.

    Args and errors are those of :func:`run_trial`.

    Args:
        counting: put a counter in the place of the allocator. The run is then no proof of anything.
    """
    allowed = permissions()
    method: CensusMethod = "perf" if allowed.perf else "ptrace" if allowed.ptrace else "none"
    run = execute(
        workload.model_copy(update={"rest_s": None}),
        configuration,
        timeout_s,
        scratch,
        method,
        None,
        stand_in=COUNTER if counting else None,
    )
    rehearsed = Rehearsed(run.verdict.sequences, run.verdict.finding, run.verdict.proof.images or 0)
    asked = None if run.verdict.proof.silent else _asked(run.testimonies)
    return Rehearsal(run.status, run.reason, run.verdict.proof, rehearsed, asked)


def can_count() -> bool:
    """Whether the counter is installed: it is built where the C library keeps names of its own for its heap (glibc)."""
    try:
        native.path(COUNTER)
    except native.NativePartMissing:
        return False
    return True


def _asked(testimonies: Sequence[witness.Testimony]) -> Asked | None:
    """What all images asked of malloc; None where one of them did not tell, as one that became another by exec.

    A sum without it would be no bound.
    """
    counted = [one.departure.counted if one.departure else None for one in testimonies]
    told = [each for each in counted if each is not None]
    if not told or len(told) < len(counted):
        return None
    return Asked(
        calls=sum(each.calls for each in told),
        most_kib=sum(each.most_kib for each in told),
        private_kib=sum(each.private_kib for each in told),
    )
