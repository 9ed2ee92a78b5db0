"""A results folder as an archive, from a place to here."""

from __future__ import annotations

import io
import tarfile
import tempfile
from pathlib import Path

from freestone.experiments.engines import Unreachable


def packed(folder: Path) -> bytes:
    """The files of a folder as an archive."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for file in sorted(folder.iterdir()):
            if file.is_file():
                tar.add(file, arcname=file.name, recursive=False)
    return content.getvalue()


def unpacked(archive: bytes, folder: Path) -> None:
    """Put the files of an archive into a folder, each whole or not at all.

    What could lie outside of the folder, links and devices are left out, whoever made the archive.

    Raises:
        Unreachable: it is no archive, or the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetched-") as scratch,
            tarfile.open(fileobj=io.BytesIO(archive)) as tar,
        ):
            files = [member for member in tar if member.isreg()]
            tar.extractall(scratch, members=files, filter="data")
            for member in files:
                target = folder / member.name
                target.parent.mkdir(parents=True, exist_ok=True)
                (Path(scratch) / member.name).replace(target)
    except (tarfile.TarError, OSError) as error:
        raise Unreachable(f"what it has measured could not be brought here: {str(error).splitlines()[0]}") from error
