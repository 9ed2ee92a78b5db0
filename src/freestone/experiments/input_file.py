"""What is known of the file that a workload reads as its standard input: that it is there, its size, a hash of it."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from freestone.experiments.plan import PlanError
from freestone.records.schema import Input, Workload


def described(workloads: Sequence[Workload]) -> list[Workload]:
    """The workloads with what is known of their inputs; each file is read once.

    Where a workload has a setup or prepare, those may make the file: it need not be there, and nothing is known of it.

    Raises:
        PlanError: one is missing, or nothing that every run could read from its beginning.
    """
    known: dict[str, Input] = {}
    found = []
    for workload in workloads:
        if workload.input is not None and not may_make(workload):
            if workload.input.file not in known:
                known[workload.input.file] = _read(workload.input.file)
            workload = workload.model_copy(update={"input": known[workload.input.file]})
        found.append(workload)
    return found


def changed(workloads: Sequence[Workload]) -> str | None:
    """Which input is another one now, in one line; None where all are what they were.

    Raises:
        PlanError: one is missing.
    """
    for before, now in zip(workloads, described(workloads), strict=True):
        if before.input != now.input:
            assert now.input is not None
            return f"the input {now.input.file} has other content now"
    return None


def may_make(workload: Workload) -> bool:
    """Whether a workload has commands before its runs, by which the files may come that are not there yet."""
    return workload.stages.setup is not None or workload.stages.prepare is not None


def _read(file: str) -> Input:
    try:
        mode = os.stat(file).st_mode
        if stat.S_ISCHR(mode) and not _is_terminal(file):
            return Input(file=file)
        if not stat.S_ISREG(mode):
            what = "a folder" if stat.S_ISDIR(mode) else "no file that every run could read from its beginning"
            raise PlanError(f"the input {file} is {what}")
        with Path(file).open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
            return Input(file=file, bytes=opened.tell(), sha256=digest)
    except OSError as error:
        raise PlanError(f"cannot read the input {file}: {(error.strerror or str(error)).lower()}") from error


def _is_terminal(file: str) -> bool:
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        return os.isatty(descriptor)
    finally:
        os.close(descriptor)
