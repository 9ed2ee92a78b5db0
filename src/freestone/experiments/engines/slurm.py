"""A cluster run by Slurm: a job for each kind of node, alone on its node, into a folder that all nodes share.

Slurm's own ``sbatch``, ``squeue`` and ``scontrol`` do all: they also work on clusters without accounting.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from freestone.experiments.engines import Carried, Tell, Unreachable, command
from freestone.records import store
from freestone.records.schema import Order, Place

UNDER_WAY: Final = (
    *("PENDING", "RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "STOPPED"),
    *("REQUEUED", "REQUEUE_HOLD"),
)
"""States after which there is another one. Slurm requeues a job whose node fails, and it continues where it was."""

LATE_S: Final = 60.0
"""How long a shared folder may take to show the files that a node has written."""

SILENT_S: Final = 600.0
"""How long the controller may not answer while a job runs: it may be restarted."""

LOOK_S: Final = 2.0
_TAIL_BYTES: Final = 1 << 16


def carry_out(order: Order, place: Place, folder: Path, tell: Tell, stop: threading.Event) -> Carried:
    """Run the order as a job; an :data:`freestone.experiments.engines.Engine`. An earlier job of it is waited for."""
    log = folder.with_name(f"{folder.name}.log")
    before = _written(folder)
    name = f"freestone-{command.kept_as(order, place)}"
    job = _ask(["squeue", "--noheader", "--format=%i", f"--name={name}"], stop).partition("\n")[0].strip()
    job = job or _submit(order, place, folder, log, name, stop)
    tell(f"is job {job}")
    state, status = _wait(job, tell, stop)
    if stop.is_set():
        return command.INTERRUPTED
    if state not in ("COMPLETED", "FAILED"):
        return Carried(status or command.INTERRUPTED.status, f"job {job} has not run to its end: {state.lower()}")
    if status in command.DONE:
        _await(folder, before, stop)
    return Carried(status, _last(log) if status else None)


def _submit(order: Order, place: Place, folder: Path, log: Path, name: str, stop: threading.Event) -> str:
    line = shlex.join(command.lab(*command.words(order, str(folder.absolute()))))
    words = ["sbatch", "--parsable", "--exclusive", "--requeue", "--open-mode=append", f"--job-name={name}"]
    words += [f"--output={log.absolute()}", f"--chdir={order.directory}", f"--time={order.most_minutes}"]
    words += [f"--constraint={place.kind}"] if place.kind else []
    # exec: the job ends with the lab's status, and the lab receives its signals.
    return _ask([*words, f"--wrap=exec {line}"], stop).split(";")[0].strip()


def _ask(words: Sequence[str], stop: threading.Event) -> str:
    if shutil.which(words[0]) is None:
        raise Unreachable(f"there is no {words[0]} here: submit from a machine of the cluster")
    carried = command.run(words, stop)
    if carried.status != 0:
        raise Unreachable(carried.last or f"{words[0]} failed")
    return carried.output.decode(errors="replace")


def _wait(job: str, tell: Tell, stop: threading.Event) -> tuple[str, int]:
    """Return the state in which a job has ended, and its exit status; cancel it at a stop."""
    told, heard_at = "", time.monotonic()
    while not stop.is_set():
        try:
            fields = dict(re.findall(r"(\w+)=(\S*)", _ask(["scontrol", "show", "job", "--oneliner", job], stop)))
            heard_at = time.monotonic()
        except Unreachable as error:
            if "Invalid job id" in str(error):
                raise Unreachable(f"the cluster no longer knows job {job}: its results are kept") from error
            if time.monotonic() - heard_at > SILENT_S:
                raise Unreachable(f"{error}; job {job} may continue") from error
            fields = {"JobState": "PENDING", "Reason": str(error)}
        state, reason = fields.get("JobState", ""), fields.get("Reason", "None")
        if state not in UNDER_WAY:
            status, _, number = fields.get("ExitCode", "1:0").partition(":")
            return state, -int(number) if number not in ("", "0") else int(status)
        if state == "PENDING" and reason not in ("None", told):
            tell(f"job {job}: {reason}")
            told = reason
        stop.wait(LOOK_S)
    _ask(["scancel", job], stop)
    return "CANCELLED", command.INTERRUPTED.status


def _await(folder: Path, before: tuple[int, int] | None, stop: threading.Event) -> None:
    """Wait until a shared folder shows the summary that the job has written last; each is a new file.

    Raises:
        Unreachable: it never does.
    """
    end = time.monotonic() + LATE_S
    while _written(folder) in (None, before) and not stop.is_set():
        if time.monotonic() > end:
            raise Unreachable(f"{folder} shows no results of its job: is it shared by the nodes?")
        stop.wait(LOOK_S)
        list(folder.parent.iterdir())  # some file systems look again only then


def _written(folder: Path) -> tuple[int, int] | None:
    try:
        found = (folder / store.SUMMARY_FILE).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino


def _last(log: Path) -> str | None:
    """Return the last line that a job wrote."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            lines = file.read(_TAIL_BYTES).decode(errors="replace").split("\n")
    except OSError:
        return None
    return next((line.strip() for line in reversed(lines) if line.strip()), None)
