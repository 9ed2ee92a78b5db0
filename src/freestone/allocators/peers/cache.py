"""The folder the built peers are kept in: what is there, how one comes in whole or not at all, how one goes.

$XDG_CACHE_HOME/freestone/peers/
  mimalloc3-3.3.2-0123456789/    a built peer: receipt.json, libmimalloc3.so, build.log
  mimalloc3.log                  of a build that failed
  .building-mimalloc3-x1y2z3/    a build that is going on, locked by its process
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from freestone.allocators.peers.errors import CacheError
from freestone.records import cached
from freestone.records.whole import why, write_whole

RECEIPT = "receipt.json"
BUILD_LOG = "build.log"
_BUILDING = ".building-"
_NEW = ".new-"
_NEW_FOR_S = 3600
"""How old a folder is that was never locked, and never will be."""
_LOCK = "lock"
_FULL = {errno.ENOSPC, errno.EDQUOT}


class Receipt(BaseModel):
    """Where a built library comes from. ``receipt.json`` is its last part written."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str
    version: str = Field(description="of the allocator")
    library: str = Field(description="file name, beside the receipt")
    package: str
    package_version: str
    package_sha256: str
    compilers: dict[str, str] = Field(description="tool -> the first line of what it says of its version")
    commands: list[str] = Field(description="what built it, in order; folders relative to the source package")
    environment: dict[str, str] = Field(default_factory=dict, description="what a program needs for it")
    built_at: str = Field(description="ISO 8601, UTC")
    build_s: float

    @property
    def origin(self) -> str:
        """Where it comes from, as the lab's records say it."""
        return f"built from {self.package} {self.package_version.partition('+')[0]}"


@dataclass(frozen=True)
class Built:
    """A peer that is in the cache."""

    folder: Path
    receipt: Receipt

    @property
    def library(self) -> Path:
        return self.folder / self.receipt.library


def root(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the peers are kept; the folder need not exist."""
    return cached.folder(environment) / "peers"


def built(folder: Path | None = None) -> dict[str, Built]:
    """The peers that are in the cache, by name; of two builds of one, the later. What is damaged is not there."""
    found: dict[str, Built] = {}
    for place in _folders(root() if folder is None else folder):
        peer = read(place)
        if peer is not None:
            other = found.get(peer.receipt.name)
            if other is None or other.receipt.built_at < peer.receipt.built_at:
                found[peer.receipt.name] = peer
    return found


def read(place: Path) -> Built | None:
    """The peer in one folder, or None when there is none or it is not whole."""
    try:
        receipt = Receipt.model_validate_json((place / RECEIPT).read_bytes())
    except (OSError, ValidationError):
        return None
    peer = Built(place, receipt)
    return peer if "/" not in receipt.library and peer.library.is_file() else None


def at(library: str | os.PathLike[str] | None) -> Receipt | None:
    """The receipt of a library that was built here, None for any other file."""
    if library is None:
        return None
    peer = read(Path(library).parent)
    return peer.receipt if peer is not None and peer.library.name == Path(library).name else None


def log_of(name: str, folder: Path) -> Path:
    """Where the log of a peer's build is until the build has succeeded."""
    return folder / f"{name}.log"


@contextlib.contextmanager
def building(name: str, folder: Path) -> Iterator[Path]:
    """An empty folder to build in, on the cache's own file system; gone afterwards, whatever happened.

    Folders that a killed process left behind are taken away first.

    Raises:
        CacheError: nothing can be written there, or the disk is full.
    """
    with _honest(folder), contextlib.ExitStack() as ends:
        folder.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        place = Path(tempfile.mkdtemp(prefix=_NEW, dir=folder))
        ends.callback(lambda: shutil.rmtree(place, ignore_errors=True))
        # The lock goes with the process, however it ends. It is held before anybody looks for the folder.
        lock = ends.enter_context(open(place / _LOCK, "w"))
        fcntl.flock(lock, fcntl.LOCK_EX)
        place = place.rename(folder / f"{_BUILDING}{name}-{place.name.removeprefix(_NEW)}")
        yield place


def store(parts: Path, receipt: Receipt, target: Path) -> Built:
    """Put a finished folder in its place in the cache, and take older builds of the same peer away.

    Args:
        parts: a folder with the library and the log, on the cache's file system.
        receipt: written into it last.
        target: its name in the cache. When another process was faster, its result is kept.
    """
    with _honest(target.parent):
        write_whole(parts / RECEIPT, receipt.model_dump_json(indent=2) + "\n")
        _sync(parts / receipt.library)
        _sync(parts)
        if target.exists() and read(target) is None:
            # Half a folder, or one that another process takes away meanwhile.
            _discard(target)
        try:
            parts.rename(target)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
    for other in _folders(target.parent):
        peer = read(other) if other != target else None
        if peer is not None and peer.receipt.name == receipt.name:
            _discard(other)
    return Built(target, receipt)


def remove(name: str, folder: Path) -> list[Path]:
    """Take every build of a peer and its log away; returns the folders that went.

    Raises:
        CacheError: one cannot be removed.
    """
    gone: list[Path] = []
    with _honest(folder):
        for place in _folders(folder):
            peer = read(place)
            if peer is not None and peer.receipt.name == name:
                _discard(place)
                gone.append(place)
        log_of(name, folder).unlink(missing_ok=True)
        _sweep(folder)
    return gone


def _discard(place: Path) -> None:
    # Out of sight at once, then bit by bit: nobody finds half a peer.
    hidden = Path(tempfile.mkdtemp(prefix=_NEW, dir=place.parent))
    with contextlib.suppress(FileNotFoundError):  # another process was faster
        place.rename(hidden / place.name)
    shutil.rmtree(hidden, ignore_errors=True)


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(place for place in folder.iterdir() if not place.name.startswith(".") and place.is_dir())
    except OSError:
        return []


def _sweep(folder: Path) -> None:
    """Take away what killed processes left."""
    for place in folder.glob(f"{_BUILDING}*"):
        try:
            with open(place / _LOCK) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            pass  # half removed
        except OSError:
            continue  # its process lives
        shutil.rmtree(place, ignore_errors=True)
    for place in folder.glob(f"{_NEW}*"):
        with contextlib.suppress(OSError):
            if time.time() - place.stat().st_mtime > _NEW_FOR_S:
                shutil.rmtree(place, ignore_errors=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _honest(folder: Path) -> Iterator[None]:
    """What the system refuses in the cache, as one line that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise full(folder) from None
        reason = "is no folder" if isinstance(error, FileExistsError | NotADirectoryError) else why(error)
        remedy = "set XDG_CACHE_HOME to a folder that you can write to"
        raise CacheError(f"{error.filename or folder}: {reason}; {remedy}") from None


def full(folder: Path) -> CacheError:
    """The error of a full disk."""
    return CacheError(f"no space left for peers in {folder}; make room there or set XDG_CACHE_HOME")
