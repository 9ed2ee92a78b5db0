"""A cluster run by Slurm: a job for each kind of node, alone on its node, into a folder that all nodes share.

Jobs are submitted by Slurm's own ``sbatch``, and asked for by ``scontrol``: both work on clusters without accounts,
on which submitit cannot tell how a job has ended (docs/design/measurement.md).
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from freestone.experiments.engines import Carried, Unreachable, command, limits, question
from freestone.experiments.engines.job import Job, keep, kept, summary_of
from freestone.records import store
from freestone.records.schema import Order, Place

UNDER_WAY: Final = {
    "PENDING",
    "RUNNING",
    "CONFIGURING",
    "COMPLETING",
    "SUSPENDED",
    "REQUEUED",
    "REQUEUE_HOLD",
    "STOPPED",
}
"""States after which there is another one."""

LOST: Final = {"NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "REVOKED", "DEADLINE"}
"""States of a job that was taken away: another one goes on where it was."""

MOST_LOST: Final = 3
"""So many jobs of a place may be lost."""

LATE_S: Final = 60.0
"""How long a folder that is shared may take to show what a node has written."""

SHOWN_S: Final = 10.0
"""The same, of a job that was ended by others: it may have written nothing."""

LOOK_S: Final = 2.0

SILENT_S: Final = 600.0
"""How long the controller may not answer while a job runs: it is restarted, or its machine is."""

AGAIN_S: Final = 10.0

RAN: Final = ("COMPLETED", "FAILED")
"""States of a job whose exit status is its own: one that is cancelled while it waits has 0."""

KILLED: Final = 143
"""The exit status of what was told to end, as shells have it."""

UNKNOWN: Final = "Invalid job id"
"""What the controller says of a job that ended long ago."""


class Slurm:
    """Submits the order as jobs."""

    def carry_out(
        self, order: Order, place: Place, folder: Path, tell: Callable[[str], None], stop: threading.Event
    ) -> Carried:
        """As :meth:`freestone.experiments.engines.Engine.carry_out`."""
        log = folder.with_name(f"{folder.name}.log")
        asked = shlex.join(command.lab(*command.words(order, str(folder.absolute()))))
        job = earlier = _under_way(order, place, folder, tell, stop)
        for _ in range(MOST_LOST + 1):
            if job is None:
                if stop.is_set():
                    return Carried(130, "interrupted")
                held = summary_of(folder)
                job = Job(_submitted(order, place, log, asked, stop), held)
                tell(f"is job {job.number}")
                try:
                    keep(job, folder)
                except store.StoreError as error:
                    tell(str(error))
            state, status = _waited(job.number, stop, tell)
            if stop.is_set():
                return Carried(130, "interrupted")
            if state not in LOST and not (state == "CANCELLED" and job is earlier):
                if state not in RAN:
                    return _not_run(job, state, status, folder, stop)
                _await(folder, log, job if status in command.DONE else None, stop)
                return Carried(status, _last(log) if status else None)
            tell(f"job {job.number} was lost ({state.lower()}): what it had finished is kept; it is submitted again")
            job = None
        raise Unreachable(f"{MOST_LOST + 1} jobs were lost; what they had finished is kept")


def _submitted(order: Order, place: Place, log: Path, asked: str, stop: threading.Event) -> str:
    words = [
        "sbatch",
        "--parsable",
        "--exclusive",
        "--requeue",
        "--open-mode=append",
        f"--job-name={_called(place)}",
        f"--comment={order.id}",
    ]
    words += [f"--output={log.absolute()}", f"--chdir={order.directory}", f"--time={order.most_minutes}"]
    words += [f"--constraint={place.kind}"] if place.kind else []
    # The job ends with the program's own status, and hears of its end.
    return _said([*words, f"--wrap=exec {asked}"], stop, wanted=True).split(";")[0].strip()


def _called(place: Place) -> str:
    return f"freestone-{place.name}"


def _under_way(
    order: Order, place: Place, folder: Path, tell: Callable[[str], None], stop: threading.Event
) -> Job | None:
    """The job of an earlier session that has not ended: another one beside it would only wait for its folder."""
    before = kept(folder)
    if before is None:
        return None
    fields = _shown(before.number, stop, tell)
    ours = fields.get("JobName", _called(place)) == _called(place) and fields.get("Comment", order.id) == order.id
    if not ours or fields.get("JobState") not in UNDER_WAY:
        return None
    tell(f"is job {before.number}, which was submitted before")
    return before


def _said(words: Sequence[str], stop: threading.Event, *, wanted: bool = False) -> str:
    """What a command of Slurm says.

    Args:
        wanted: also when somebody asks to stop.
    """
    if shutil.which(words[0]) is None:
        raise Unreachable(f"there is no {words[0]} here: submit from a machine of the cluster")
    answer = question.asked(words, stop, wanted=wanted)
    if answer.status != 0:
        raise Unreachable(answer.told or f"{words[0]} failed")
    return answer.said.decode(errors="replace")


def _shown(job: str, stop: threading.Event, tell: Callable[[str], None]) -> dict[str, str]:
    """What the cluster says of a job; nothing where it knows it no more, or somebody asked to stop.

    A controller that does not answer is asked again: the job runs all the same.

    Raises:
        Unreachable: it has not answered for :data:`SILENT_S`.
    """
    end = time.monotonic() + SILENT_S
    told = False
    while not stop.is_set():
        try:
            said = _said(["scontrol", "show", "job", "--oneliner", job], stop)
            return dict(re.findall(r"(\w+)=(\S*)", said))
        except Unreachable as error:
            if UNKNOWN in str(error) or stop.is_set():
                break
            if time.monotonic() > end:
                raise Unreachable(f"{error}; job {job} may go on, and is waited for when the order goes on") from error
            if not told:
                tell(f"{error}; it is asked again")
            told = True
        stop.wait(AGAIN_S)
    return {}


def _waited(job: str, stop: threading.Event, tell: Callable[[str], None]) -> tuple[str, int]:
    """The state in which a job has ended, and its exit status; it is cancelled when asked to stop."""
    told = ""
    while True:
        fields = _shown(job, stop, tell)
        state = fields.get("JobState", "UNKNOWN")
        if stop.is_set():
            if state in UNDER_WAY or not fields:
                _said(["scancel", job], stop, wanted=True)
            return "CANCELLED", 130
        if not fields:
            raise Unreachable(f"the cluster knows nothing of job {job} any more: what it has measured is kept")
        if state not in UNDER_WAY:
            status, _, number = fields.get("ExitCode", "1:0").partition(":")
            return state, -int(number) if number not in ("", "0") else int(status)
        reason = fields.get("Reason", "None")
        if state == "PENDING" and reason not in ("None", told):
            tell(f"job {job} waits: {reason}")
            told = reason
        stop.wait(LOOK_S)


def _not_run(job: Job, state: str, status: int, folder: Path, stop: threading.Event) -> Carried:
    """What came of a job that did not come to its own end, such as one that was cancelled."""
    if status not in command.DONE:  # it has begun, and may have written what shows a little later
        end = time.monotonic() + SHOWN_S
        while not _shows(folder, None) and time.monotonic() < end and not stop.wait(LOOK_S):
            list(folder.parent.iterdir())
    told = f"job {job.number} has not run to its end: {state.lower()}"
    return Carried(KILLED if status in command.DONE else status, told)


def _await(folder: Path, log: Path, measured: Job | None, stop: threading.Event) -> None:
    """Until the folder shows what the job has written.

    Args:
        measured: a job that has written a summary of its own when all else was written; None for one that may not
            even have begun.

    Raises:
        Unreachable: it never does.
    """
    end = time.monotonic() + LATE_S
    while not _shows(folder, measured):
        if measured is None and "freestone: " in (_last(log) or ""):
            return  # it could not begin, and says why
        if stop.is_set():
            return
        if time.monotonic() > end:
            raise Unreachable(f"{folder} shows nothing of its job: is it shared by the nodes?")
        stop.wait(LOOK_S)
        list(folder.parent.iterdir())  # some file systems look again only when asked


def _shows(folder: Path, measured: Job | None) -> bool:
    if measured is None:
        return (folder / store.EXPERIMENT_FILE).exists()
    return summary_of(folder) not in ("", measured.summary)


def _last(log: Path) -> str | None:
    """The last line that a job wrote."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - limits.MOST_TOLD_BYTES))
            said = file.read(limits.MOST_TOLD_BYTES).decode(errors="replace").strip().splitlines()
    except OSError:
        return None
    return said[-1] if said else None
