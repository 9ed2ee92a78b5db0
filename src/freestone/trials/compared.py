"""What of a program's output is compared between allocators: all of it, what a filter leaves, or what is no figure."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from freestone.records.schema import Output, Workload
from freestone.trials import escort
from freestone.trials.escort import Errand

LONGEST_S = 60.0
"""A filter that takes longer hangs."""


def digested(said: Output, stdout: Path, workload: Workload, folder: Path) -> tuple[Output, str | None]:
    """The output with the digest of what is compared of it, or why there is none, in one line.

    The line of figures of a program that measures itself is never the same, and not compared.

    Args:
        said: what was read of ``stdout``.
        folder: where the filter's own output goes; gone with the run.
    """
    if workload.compare_output is None:
        digest = _before_figures(stdout) if workload.reads == "json" else None
        return said.model_copy(update={"compared_sha256": digest}), None
    left, complaint = folder / "compared", folder / "filter"
    why = _filter(workload, stdout, left, complaint)
    digest = None if why is not None else _digest(left)
    return said.model_copy(update={"compared_sha256": digest}), why


def _filter(workload: Workload, stdout: Path, left: Path, complaint: Path) -> str | None:
    """Send the output through the filter; why that failed, in one line."""
    line = workload.compare_output or ""
    with (
        stdout.open("rb") as source,
        left.open("wb") as out,
        complaint.open("wb") as err,
        escort.begun(Errand(line, out, err, source, directory=workload.directory)) as filtering,
    ):
        try:
            status = filtering.process.wait(LONGEST_S)
        except subprocess.TimeoutExpired:
            filtering.end()
            return f"the filter --compare-output '{line}' was still running after {LONGEST_S:g} s"
    if status == 0:
        return None
    lines = complaint.read_bytes()[-2048:].decode("utf-8", "replace").strip().splitlines()
    last = f": {lines[-1][:160]}" if lines else ""
    return f"the filter --compare-output '{line}' had exit status {status}{last}"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _before_figures(stdout: Path) -> str:
    """The digest of every line but the last that holds anything."""
    digest, last = hashlib.sha256(), b""
    if stdout.exists():
        with stdout.open("rb") as file:
            for line in file:
                if line.strip():
                    digest.update(last)
                    last = line
    return digest.hexdigest()
