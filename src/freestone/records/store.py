"""A results folder: made once, appended to trial by trial, read whatever happened to it.

Finished measurements are the costly part of an experiment, so nothing here deletes or overwrites one: a new experiment
gets a folder of its own, a record is on the disk before the next trial starts, and a damaged line costs that line only.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from pydantic import BaseModel, ValidationError

from freestone.records import locks, regular
from freestone.records.schema import (
    SCHEMA_VERSION,
    CallCounts,
    Experiment,
    InstructionCounts,
    Order,
    Summary,
    TrialRecord,
)
from freestone.records.whole import why, write_whole

EXPERIMENT_FILE = "experiment.json"
TRIALS_FILE = "trials.jsonl"
ORDER_FILE = "order.json"
PARQUET_FILE = "trials.parquet"
SUMMARY_FILE = "summary.json"
REPORT_FILE = "report.html"
CALLS_FILE = "calls.json"
INSTRUCTIONS_FILE = "instructions.json"

MOST_BYTES = 1 << 30
"""Of a file that is one document. More takes all memory of a reader, and nobody measures so many cells."""

Document = TypeVar("Document", bound=BaseModel)


class StoreError(Exception):
    """A results folder could not be made, read or written; the message is one line that names the file."""


@dataclass(frozen=True)
class Damage:
    """A line of ``trials.jsonl`` that could not be read as a record; ``line`` counts from 1."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


@dataclass(frozen=True)
class Reading:
    """What a trials file holds: the records that could be read, and the lines that could not."""

    records: list[TrialRecord]
    damage: list[Damage]


def create_folder(results: Path, name: str, now: datetime) -> Path:
    """A new, empty results folder ``<results>/<UTC time>-<name>``, with a numeric suffix where that exists already.

    Args:
        results: the folder that holds all results; made if missing.
        name: what the experiment is called; characters that are trouble in a file name become dashes.
        now: UTC time of the experiment's start.

    Raises:
        StoreError: the folder cannot be made.
    """
    base = f"{now:%Y%m%dT%H%M%SZ}-{_slug(name)}"
    try:
        results.mkdir(parents=True, exist_ok=True)
        for count in range(1, 10_000):
            folder = results / (base if count == 1 else f"{base}-{count}")
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            return folder
    except OSError as error:
        raise StoreError(f"cannot write results into {results}: {why(error)}") from error
    raise StoreError(f"cannot write results into {results}: {base} exists 9999 times")


def write_experiment(folder: Path, experiment: Experiment) -> None:
    """Write the head of a results folder; it is never rewritten.

    Raises:
        StoreError: it exists already, or cannot be written.
    """
    target = folder / EXPERIMENT_FILE
    try:
        write_whole(target, experiment.model_dump_json(indent=2) + "\n", new=True)
    except FileExistsError as error:
        raise StoreError(f"{target} exists already; an experiment is never rewritten") from error
    except OSError as error:
        raise StoreError(f"cannot write {target}: {why(error)}") from error


def read_experiment(folder: Path) -> Experiment:
    """The head of a results folder.

    Raises:
        StoreError: the folder is no results folder, or its head is damaged or from a newer Freestone.
    """
    return _read_whole(folder / EXPERIMENT_FILE, Experiment, folder)


def make_folder(folder: Path) -> None:
    """A results folder with this very path, whether it is there already or not.

    Raises:
        StoreError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot write results into {folder}: {why(error)}") from error


def write_order(folder: Path, order: Order) -> None:
    """Write what several places are to measure.

    Raises:
        StoreError: it cannot be written.
    """
    _write_whole(folder / ORDER_FILE, order.model_dump_json(indent=2) + "\n")


def read_order(folder: Path) -> Order:
    """What several places are to measure.

    Raises:
        StoreError: the folder holds none, or it is damaged.
    """
    return _read_whole(folder / ORDER_FILE, Order, folder)


def folder_name(text: str) -> str:
    """What of a text can be a folder's name everywhere; empty where nothing can."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip("-.")


def unlike_files(name: str) -> str:
    """A name that no file of results has, nor one of an order beside the folders of its places; most stay as they are.

    A folder that holds another one of such a name is taken for results of another kind.
    """
    return re.sub(r"\.(json|jsonl|parquet|html|log|job)\Z", r"-\1", name)


def places(folder: Path) -> list[Path]:
    """The results folders of an order that hold something, by name; of any other folder itself.

    What is hidden is no place: it is being brought here, or was left by whoever was killed at that.
    """
    if not (folder / ORDER_FILE).exists():
        return [folder]
    found = (each for each in folder.iterdir() if not each.name.startswith("."))
    return sorted(each for each in found if (each / EXPERIMENT_FILE).exists())


def write_summary(folder: Path, summary: Summary) -> None:
    """Write what the statistics say; replaced as a whole, since it can be computed again at any time.

    Raises:
        StoreError: it cannot be written.
    """
    _write_whole(folder / SUMMARY_FILE, summary.model_dump_json(indent=2) + "\n")


def read_summary(folder: Path) -> Summary:
    """The summary last written into a folder.

    Raises:
        StoreError: there is none, or it is damaged.
    """
    return _read_whole(folder / SUMMARY_FILE, Summary, folder)


def write_calls(folder: Path, counts: CallCounts) -> None:
    """Write the counts of system calls; replaced as a whole, since they can be counted again at any time.

    Raises:
        StoreError: they cannot be written.
    """
    _write_whole(folder / CALLS_FILE, counts.model_dump_json(indent=2) + "\n")


def read_calls(folder: Path) -> CallCounts | None:
    """The counts of system calls of a folder; None where nobody has counted.

    Raises:
        StoreError: they are damaged.
    """
    return _read_counts(folder, CALLS_FILE, CallCounts)


def write_instructions(folder: Path, counts: InstructionCounts) -> None:
    """Write the counts of instructions and requests; replaced as a whole.

    Raises:
        StoreError: they cannot be written.
    """
    _write_whole(folder / INSTRUCTIONS_FILE, counts.model_dump_json(indent=2) + "\n")


def read_instructions(folder: Path) -> InstructionCounts | None:
    """The counts of instructions and requests of a folder; None where nobody has counted.

    Raises:
        StoreError: they are damaged.
    """
    return _read_counts(folder, INSTRUCTIONS_FILE, InstructionCounts)


def read_trials(folder: Path) -> Reading:
    """Every record of a folder that can be read; what cannot is named by line and left out. No file: no records.

    Raises:
        StoreError: the file exists and cannot be opened.
    """
    path = folder / TRIALS_FILE
    try:
        content = regular.content(path)
    except FileNotFoundError:
        return Reading([], [])
    except OSError as error:
        raise StoreError(f"cannot read {path}: {why(error)}") from error
    records: list[TrialRecord] = []
    damage: list[Damage] = []
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        newer = _newer(line)
        if newer is not None:
            said = f"schema version {newer} is newer than {SCHEMA_VERSION}: use a newer Freestone"
            damage.append(Damage(number, said))
            continue
        try:
            records.append(TrialRecord.model_validate_json(line))
        except ValidationError as error:
            damage.append(Damage(number, _first_problem(error)))
    return Reading(records, damage)


def is_being_written(folder: Path) -> bool:
    """Whether a process seen from here appends trials to a folder now, or holds it, by their locks."""
    now = locks.held_files()
    return any(locks.is_held(each, now) for each in (folder, folder / TRIALS_FILE))


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """A folder that this process alone works in, before there are trials and among them.

    Raises:
        StoreError: another freestone holds it, or it cannot be opened.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise StoreError(f"cannot open {folder}: {why(error)}") from error
    try:
        _alone(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def _alone(descriptor: int, what: Path) -> None:
    """Take the lock of a file or folder; where the file system has none, the promise of one writer is the user's.

    Raises:
        StoreError: another process has it.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise StoreError(f"{what} is being written by another freestone; wait for it to end") from error
    except OSError:
        pass


class TrialLog:
    """The trials file of one experiment, open for appending by one process at a time.

    A record is flushed and synced before :meth:`append` returns. One that could not be written whole is taken back, so
    that the file ends with the last record that was.
    """

    def __init__(self, folder: Path) -> None:
        """Open the file, making it if need be.

        Raises:
            StoreError: it cannot be opened, or another process is appending to it.
        """
        self.path = folder / TRIALS_FILE
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise StoreError(f"cannot write {self.path}: {why(error)}") from error
        try:
            _alone(self._file, self.path)
        except StoreError:
            os.close(self._file)
            raise

    def append(self, record: TrialRecord) -> None:
        """Add one record and have it on the disk.

        Raises:
            StoreError: it could not be written; earlier records are as they were.
        """
        line = record.model_dump_json().encode() + b"\n"
        try:
            end = os.fstat(self._file).st_size
            # A crash may have left half a line: it must not swallow this one.
            if end and os.pread(self._file, 1, end - 1) != b"\n":
                line = b"\n" + line
        except OSError as error:
            raise StoreError(f"cannot write {self.path}: {why(error)}") from error
        try:
            written = 0
            while written < len(line):
                written += os.write(self._file, line[written:])
            os.fsync(self._file)
        except OSError as error:
            self._take_back(end)
            raise StoreError(f"cannot write {self.path}: {why(error)}") from error
        except BaseException:
            self._take_back(end)
            raise

    def close(self) -> None:
        """Give the file back. Safe to call twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _take_back(self, end: int) -> None:
        with contextlib.suppress(OSError):  # else the half line stays; readers leave it out
            os.ftruncate(self._file, end)


def _slug(name: str) -> str:
    slug = re.sub(r"[^A-Za-z0-9._+-]+", "-", name).strip("-.")
    return slug[:60] or "experiment"


def _read_counts(folder: Path, name: str, kind: type[Document]) -> Document | None:
    """What ``--count`` has counted; None if nothing was."""
    path = folder / name
    try:
        return _read_whole(path, kind, folder) if path.exists() else None
    except StoreError as error:
        raise StoreError(f"{error}; without that file, --count starts anew") from error


def _read_whole(path: Path, kind: type[Document], folder: Path) -> Document:
    try:
        content = regular.content(path, most_bytes=MOST_BYTES)
    except FileNotFoundError as error:
        missing = f"{folder} does not exist" if not folder.exists() else f"{folder} holds no {path.name}"
        raise StoreError(f"{missing}; give a results folder of freestone compare or bench") from error
    except OSError as error:
        raise StoreError(f"cannot read {path}: {why(error)}") from error
    newer = _newer(content)
    if newer is not None:
        raise StoreError(
            f"{path} has schema version {newer}; this Freestone reads up to {SCHEMA_VERSION}: use a newer one"
        )
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        raise StoreError(f"{path} is damaged: {_first_problem(error)}") from error


class _Version(BaseModel):
    schema_version: int = SCHEMA_VERSION


def _newer(content: bytes) -> int | None:
    """The schema version, if it is a newer one. Asked first: what else a newer schema holds, this one cannot say."""
    if b"schema_version" not in content:
        return None
    try:
        version = _Version.model_validate_json(content).schema_version
    except ValidationError:
        return None
    return version if version > SCHEMA_VERSION else None


def _write_whole(path: Path, text: str) -> None:
    try:
        write_whole(path, text)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {why(error)}") from error


def _first_problem(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(part) for part in problem["loc"])
    return f"{place}: {problem['msg']}" if place else str(problem["msg"])


def damage_line(folder: Path, damage: Iterable[Damage]) -> str | None:
    """One line that names the damaged lines of a folder's trials file, or None when there are none."""
    found = list(damage)
    if not found:
        return None
    shown = "; ".join(str(each) for each in found[:3]) + (f"; and {len(found) - 3} more" if len(found) > 3 else "")
    return f"{folder / TRIALS_FILE}: {len(found)} damaged, left out ({shown})"
