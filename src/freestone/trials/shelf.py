"""Where the witness's reports are kept while a run goes on: a folder in memory where there is room for many."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import tempfile
import time
from pathlib import Path

MEMORY = Path("/dev/shm")

_ROOM_BYTES = 256 << 20  # a report takes a page; ten thousand processes are not unheard of
_STALE_AFTER_S = 3600.0


def new_folder(otherwise: Path, *, memory: Path = MEMORY) -> Path:
    """A new folder for reports, in ``memory`` if that has the room, else in ``otherwise``.

    On a disk, making the file is most of what a witness costs.

    Raises:
        OSError: neither can be written to.
    """
    with contextlib.suppress(OSError):
        room = os.statvfs(memory)
        if os.access(memory, os.W_OK) and room.f_bavail * room.f_frsize >= _ROOM_BYTES:
            _clear_once(memory)
            return Path(tempfile.mkdtemp(prefix=f"freestone-{os.getpid()}-", dir=memory))
    return Path(tempfile.mkdtemp(prefix="freestone-", dir=otherwise))


def clear(memory: Path, *, now_s: float) -> None:
    """Remove what a lab that was killed could not: folders of ours, untouched for an hour, whose process is gone.

    The hour is for labs in another pid namespace that share the folder with this one.
    """
    with contextlib.suppress(OSError):
        for folder in memory.iterdir():
            named = re.fullmatch(r"freestone-(\d+)-\w+", folder.name)
            if named is None or Path(f"/proc/{named[1]}").exists():
                continue
            with contextlib.suppress(OSError):
                status = folder.lstat()
                if status.st_uid == os.getuid() and now_s - status.st_mtime > _STALE_AFTER_S:
                    shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def _clear_once(memory: Path) -> None:
    clear(memory, now_s=time.time())
