"""Results folders copied into a new folder of several places: whole, or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from freestone.records import store
from freestone.records.schema import Experiment, Order, TrialRecord
from freestone.records.store import StoreError
from freestone.records.whole import umask, why


@dataclass(frozen=True)
class Original:
    """A results folder, as it was read."""

    name: str
    """What its copy is called."""
    folder: Path
    experiment: Experiment
    records: Sequence[TrialRecord]


def copy_together(originals: Sequence[Original], order: Order, target: Path) -> None:
    """Make a folder that holds an order and a copy of each results folder.

    All is copied, read again and on the disk before it gets its name, so that whatever ends this leaves nothing that
    looks like results: at most an empty folder, and a hidden one without an order.

    Raises:
        StoreError: the folder exists already, something cannot be read or written, or an original has changed.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.mkdir()  # whoever comes later finds it
    except FileExistsError as error:
        raise StoreError(f"{target} exists already; nothing is overwritten: give a folder that is not there") from error
    except OSError as error:
        raise StoreError(f"cannot make {target}: {why(error)}") from error
    made: Path | None = None
    try:
        made = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
        for original in originals:
            _copy_folder(original.folder, made / original.name)
            _require_same(original, made / original.name)
        store.write_order(made, order)
        _sync(made)
        made.chmod(0o777 & ~umask())
        made.rename(target)  # it is empty, or this fails
    except BaseException as error:
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)
        with contextlib.suppress(OSError):
            target.rmdir()
        if isinstance(error, OSError):
            raise StoreError(f"cannot copy results into {target}: {why(error)}; nothing is left there") from error
        raise
    with contextlib.suppress(OSError):
        _sync(target.parent)


def _copy_folder(original: Path, copy: Path) -> None:
    """Copy what is in a folder, but what was left behind by a write that was interrupted.

    Raises:
        OSError: something cannot be read or written.
        StoreError: there is something that is neither a file nor a folder.
    """
    copy.mkdir()
    for each in sorted(original.iterdir()):
        if each.name.startswith("."):
            continue
        kind = each.lstat().st_mode
        if stat.S_ISDIR(kind):
            _copy_folder(each, copy / each.name)
        elif stat.S_ISREG(kind):
            _copy_file(each, copy / each.name)
        else:
            raise StoreError(f"{each} is neither a file nor a folder; take it away, and merge again")
    _sync(copy)


def _copy_file(original: Path, copy: Path) -> None:
    with original.open("rb") as source, copy.open("xb") as target:
        shutil.copyfileobj(source, target)
        target.flush()
        os.fsync(target.fileno())
    shutil.copystat(original, copy)  # a report must not look older than its trials


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _require_same(original: Original, copy: Path) -> None:
    reading = store.read_trials(copy)
    if reading.damage or reading.records != original.records or store.read_experiment(copy) != original.experiment:
        raise StoreError(f"{original.folder} has changed while it was copied; merge again when nobody writes to it")
