"""A cluster run by Slurm: a job for each kind of node, alone on its node, into a folder that all nodes share.

Jobs are submitted by Slurm's own ``sbatch``, and asked for by ``scontrol``: both work on clusters without accounts,
on which submitit cannot tell how a job has ended (docs/design/2026-11-26-many-machines.md).
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from freestone.experiments.engines import Carried, Unreachable, command
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

MEASURED: Final = (0, 4)
"""Exit statuses of a job that has written all that there is: its summary is the last of it."""

LATE_S: Final = 60.0
"""How long a folder that is shared may take to show what a node has written."""

LOOK_S: Final = 2.0


class Slurm:
    """Submits the order as jobs."""

    def carry_out(
        self, order: Order, place: Place, folder: Path, tell: Callable[[str], None], stop: threading.Event
    ) -> Carried:
        """As :meth:`freestone.experiments.engines.Engine.carry_out`."""
        log = folder.with_name(f"{folder.name}.log")
        asked = shlex.join([sys.executable, "-m", "freestone", *command.words(order, str(folder.absolute()))])
        for _ in range(MOST_LOST + 1):
            job = _submitted(order, place, log, asked)
            tell(f"is job {job}")
            state, status = _waited(job, stop, tell)
            if stop.is_set():
                return Carried(130, "interrupted")
            if state not in LOST:
                _await(folder, log, store.SUMMARY_FILE if status in MEASURED else store.EXPERIMENT_FILE)
                return Carried(status, _last(log) if status else None)
            tell(f"job {job} was lost ({state.lower()}): what it had finished is kept; it is submitted again")
        raise Unreachable(f"{MOST_LOST + 1} jobs were lost; what they had finished is kept")


def _submitted(order: Order, place: Place, log: Path, asked: str) -> str:
    words = [
        "sbatch",
        "--parsable",
        "--exclusive",
        "--requeue",
        "--open-mode=append",
        f"--job-name=freestone-{place.name}",
    ]
    words += [f"--output={log.absolute()}", f"--chdir={order.directory}", f"--time={order.most_minutes}"]
    words += [f"--constraint={place.kind}"] if place.kind else []
    # The job ends with the program's own status, and hears of its end.
    return _said([*words, f"--wrap=exec {asked}"]).split(";")[0].strip()


def _said(words: Sequence[str]) -> str:
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Unreachable(f"there is no {words[0]} here: submit from a machine of the cluster") from error
    if done.returncode != 0:
        raise Unreachable((done.stderr.strip().splitlines() or [f"{words[0]} failed"])[-1])
    return done.stdout


def _waited(job: str, stop: threading.Event, tell: Callable[[str], None]) -> tuple[str, int]:
    """The state in which a job has ended, and its exit status; it is cancelled when asked to stop."""
    told = ""
    while True:
        fields = dict(re.findall(r"(\w+)=(\S*)", _said(["scontrol", "show", "job", "--oneliner", job])))
        state = fields.get("JobState", "UNKNOWN")
        if state not in UNDER_WAY:
            status, _, number = fields.get("ExitCode", "1:0").partition(":")
            return state, -int(number) if number not in ("", "0") else int(status)
        reason = fields.get("Reason", "None")
        if state == "PENDING" and reason not in ("None", told):
            tell(f"job {job} waits: {reason}")
            told = reason
        if stop.wait(LOOK_S):
            _said(["scancel", job])
            return "CANCELLED", 130


def _await(folder: Path, log: Path, last: str) -> None:
    """Until the folder shows what the job has written.

    Args:
        last: the file that is there when all others are.

    Raises:
        Unreachable: it never does.
    """
    end = time.monotonic() + LATE_S
    while not (folder / last).exists():
        if last == store.EXPERIMENT_FILE and "freestone: " in (_last(log) or ""):
            return  # it could not begin, and says why
        if time.monotonic() > end:
            raise Unreachable(f"{folder} shows nothing of its job: is it shared by the nodes?")
        time.sleep(LOOK_S)
        list(folder.parent.iterdir())  # some file systems look again only when asked


def _last(log: Path) -> str | None:
    """The last line that a job wrote."""
    try:
        said = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        return None
    return said[-1] if said else None
