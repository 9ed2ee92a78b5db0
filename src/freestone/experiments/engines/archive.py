"""A results folder as an archive, from a place to here and back.

What is here is never replaced by less: a place may have lost its cache, or its disk may have damaged it.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

from freestone.experiments.engines import Unreachable, limits, scratch
from freestone.records import store

HEAD_FIRST = (store.EXPERIMENT_FILE, store.TRIALS_FILE)
"""What is put into its place before the rest."""


def packed(folder: Path) -> bytes:
    """The files of a folder as an archive.

    Raises:
        Unreachable: they are more than is taken of a place.
    """
    content = io.BytesIO()
    files = [file for file in sorted(folder.iterdir()) if file.is_file()]
    limits.require_taken(sum(file.stat().st_size for file in files), len(files))
    with tarfile.open(fileobj=content, mode="w") as tar:
        for file in files:
            tar.add(file, arcname=file.name, recursive=False)
    return content.getvalue()


def unpacked(archive: bytes, folder: Path) -> None:
    """Put the files of an archive into a folder, each whole or not at all.

    Only files with a plain name are taken, whoever made the archive: no folders, links or devices. Where the folder
    holds what the archive lacks, it is left as it is.

    Raises:
        Unreachable: it is no archive, it is more than is taken of a place or less than what is here, or the folder
            cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _opened(archive, folder.parent) as brought:
            lost = lost_of(folder, brought)
            if lost is not None:
                raise Unreachable(f"{lost}; what is here is left as it is")
            names = sorted((file.name for file in brought.iterdir()), key=lambda name: (name not in HEAD_FIRST, name))
            for name in names:
                (brought / name).replace(folder / name)
    except (tarfile.TarError, OSError) as error:
        raise Unreachable(f"what it has measured could not be brought here: {_why(error)}") from error


def secured(archive: bytes, folder: Path) -> list[str]:
    """The names of an archive's files, where a folder holds each of them and the disk has it; else nothing."""
    try:
        with _opened(archive) as brought:
            names = sorted(file.name for file in brought.iterdir())
            for name in names:
                with (folder / name).open("rb") as here:
                    if here.read() != (brought / name).read_bytes():
                        return []
                    os.fsync(here.fileno())
        _synced(folder)
    except (tarfile.TarError, OSError, Unreachable):
        return []
    return names


def _synced(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lost(archive: bytes, folder: Path) -> str | None:
    """What a folder holds and an archive lacks, in one line; None where it lacks nothing.

    Raises:
        Unreachable: it is no archive.
    """
    try:
        with _opened(archive) as other:
            return lost_of(folder, other)
    except (tarfile.TarError, OSError) as error:
        raise Unreachable(f"what it has measured could not be read: {_why(error)}") from error


def given_back(archive: bytes, folder: Path) -> None:
    """At a place: go on where it was, also where it has lost what was brought from it before.

    Args:
        archive: what was brought before.
        folder: what there is now.

    Raises:
        Unreachable: there is something, and it is less or something else; or the archive cannot be read.
    """
    if not any((folder / name).exists() for name in HEAD_FIRST):
        unpacked(archive, folder)
        return
    try:
        with _opened(archive) as before:
            less = lost_of(before, folder)
    except (tarfile.TarError, OSError) as error:
        raise Unreachable(f"what was brought from it before could not be read: {_why(error)}") from error
    if less is not None:
        raise Unreachable(to_take_away(less, str(folder)))


def to_take_away(less: str, folder: str) -> str:
    """What is said of a place that holds less than was brought from it, or something else, in a folder there. Pure."""
    return f"{less}: take {folder} away there, and what is here is given back to it"


def lost_of(here: Path, there: Path) -> str | None:
    """What one copy of a results folder holds and another lacks, in one line; None where it lacks nothing."""
    try:
        held = store.read_trials(here).records
        brought = store.read_trials(there).records
    except store.StoreError as error:
        return f"what it has measured cannot be compared with what is here: {error}"
    if not held:
        return None
    if not (there / store.EXPERIMENT_FILE).exists():
        return f"it has lost the {len(held)} trials that it had measured"
    try:
        other = store.read_experiment(there).id
    except store.StoreError as error:
        return f"what it has measured cannot be read: {str(error).removeprefix(f'{there}/')}"
    if held[0].experiment != other:
        return f"it holds another experiment ({other}) than is here ({held[0].experiment})"
    kept = {record.model_dump_json() for record in brought}
    gone = sum(record.model_dump_json() not in kept for record in held)
    return f"it lacks {gone} of the {len(held)} trials that are here" if gone else None


@contextlib.contextmanager
def _opened(archive: bytes, beside: Path | None = None) -> Iterator[Path]:
    """The plain files of an archive, in a folder of their own.

    Args:
        beside: where that folder is made, so that files can be moved from it; None for wherever there is room.

    Raises:
        Unreachable: they are more than is taken of a place.
    """
    # What was compressed, or is written as holes, may be a thousand times what was sent.
    with scratch.made(beside) as folder, tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
        size = files = 0
        for member in tar:
            name = member.name.removeprefix("./")
            if name.startswith("/") or ".." in name.split("/"):
                raise tarfile.TarError(f"it holds {name!r}, which lies outside")
            if not member.isreg() or "/" in name or name.startswith("."):
                continue
            size, files = size + member.size, files + 1
            limits.require_taken(size, files)
            content = tar.extractfile(member)
            assert content is not None
            with content, (folder / name).open("wb") as file:
                shutil.copyfileobj(content, file)
        yield folder


def _why(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
