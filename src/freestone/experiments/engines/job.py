"""The job that a place of a cluster was last submitted as, kept beside its folder: whoever goes on waits for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from freestone.records import store
from freestone.records.whole import why, write_whole


@dataclass(frozen=True)
class Job:
    """A job, and what its folder held when it was submitted."""

    number: str
    summary: str
    """Tells one writing of the summary from the next; empty where there was none."""


def summary_of(folder: Path) -> str:
    """What tells this writing of a folder's summary from the next: each is a new file. Empty where there is none."""
    try:
        found = (folder / store.SUMMARY_FILE).stat()
    except OSError:
        return ""
    return f"{found.st_mtime_ns}-{found.st_ino}"


def keep(job: Job, folder: Path) -> None:
    """Remember the job of a folder, beside it.

    Raises:
        StoreError: it cannot be written.
    """
    file = _beside(folder)
    try:
        write_whole(file, f"{job.number} {job.summary}\n")
    except OSError as error:
        raise store.StoreError(f"cannot write {file}: {why(error)}") from error


def kept(folder: Path) -> Job | None:
    """The job of a folder; None where there is none, or it cannot be read."""
    try:
        number, _, summary = _beside(folder).read_text(errors="replace").strip().partition(" ")
    except OSError:
        return None
    return Job(number, summary) if number.isalnum() else None


def _beside(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.job")
