"""A results folder as a tar archive: the one format in which results travel between machines."""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from freestone.experiments.engines import Unreachable
from freestone.records import store

MOST_BYTES: Final = 1 << 30
"""Of the results of one machine: thousands of trials with all their samples are a few hundred MiB."""

HEAD_FIRST: Final = (store.EXPERIMENT_FILE, store.TRIALS_FILE)
"""Written before the other files."""


def pack(folder: Path) -> bytes:
    """Return the files of a folder as an archive; nothing if it holds no experiment yet."""
    if not (folder / store.EXPERIMENT_FILE).exists():
        return b""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for file in sorted(folder.iterdir()):
            if file.is_file():
                tar.add(file, arcname=file.name, recursive=False)
    return content.getvalue()


def unpack(archive: bytes, folder: Path) -> None:
    """Write the files of an archive into a folder, each whole or not at all; of an empty one none.

    Only plain files at the top of the archive are written: no folders, links, devices or hidden files.

    Raises:
        Unreachable: it is no archive or too large, does not continue the trials of the folder, or cannot be written.
    """
    try:
        files = _files(archive) if archive else {}
        if not files:
            return
        _require_continuation(files, folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name in sorted(files, key=lambda name: (name not in HEAD_FIRST, name)):
            _write(folder / name, files[name])
    except (tarfile.TarError, OSError) as error:
        why = next(iter(str(error).splitlines()), type(error).__name__)
        raise Unreachable(f"its results cannot be copied into {folder}: {why}") from error


def _files(archive: bytes) -> dict[str, bytes]:
    found, size = {}, 0
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
        for member in tar:
            name = member.name.removeprefix("./")
            if not member.isreg() or "/" in name or name.startswith("."):
                continue
            size += member.size  # a file of holes is large and was sent in a few bytes
            if size > MOST_BYTES:
                raise Unreachable(f"its results are more than {MOST_BYTES >> 20} MiB, which are not copied")
            content = tar.extractfile(member)
            assert content is not None
            found[name] = content.read()
    return found


def _require_continuation(files: dict[str, bytes], folder: Path) -> None:
    """Raise Unreachable if an archive lacks trials of a folder: a machine may have lost its disk or its cache."""
    held = _complete_lines(folder)
    if not held:
        return
    head = (folder / store.EXPERIMENT_FILE).read_bytes()
    if files.get(store.TRIALS_FILE, b"").startswith(held) and files.get(store.EXPERIMENT_FILE) == head:
        return
    raise Unreachable(f"its results do not continue those in {folder}: remove one of the two; nothing was replaced")


def _complete_lines(folder: Path) -> bytes:
    """Trials are only ever appended; a crash may leave half a line at the end."""
    try:
        held = (folder / store.TRIALS_FILE).read_bytes()
    except FileNotFoundError:
        return b""
    return held[: held.rfind(b"\n") + 1]


def _write(path: Path, content: bytes) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            os.fsync(descriptor)  # the other copy is removed once this one is written
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)
