"""Control groups with a limit of memory, of either version of the kernel's."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

GROUPS: Final = Path("/sys/fs/cgroup")


class NoGroup(OSError):
    """Why none can be had, in one line."""


def own_group(table: str) -> tuple[int, str] | None:
    """Version and path of the group this process's memory is counted in, from the text of /proc/self/cgroup."""
    unified = None
    for line in table.splitlines():
        hierarchy, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return 1, path
        if hierarchy == "0":
            unified = (2, path)
    return unified


@contextmanager
def limited(limit_bytes: int) -> Iterator[Path]:
    """A group below our own, so that no limit of ours is left behind by moving there; removed at the end.

    Raises:
        NoGroup: it cannot be made, or takes no limit.
    """
    found = own_group(Path("/proc/self/cgroup").read_text(encoding="utf-8"))
    if found is None:
        raise NoGroup("no control group counts memory here")
    version, path = found
    parent = GROUPS / ("memory" if version == 1 else "") / path.lstrip("/")
    folder = parent / f"freestone-limited-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        raise NoGroup(f"no control group can be made here: {error.strerror}") from None
    try:
        limit = folder / ("memory.limit_in_bytes" if version == 1 else "memory.max")
        try:
            limit.write_text(str(limit_bytes), encoding="ascii")
        except OSError as error:
            raise NoGroup(f"a control group here takes no limit of memory: {error.strerror}") from None
        yield folder
    finally:
        with suppress(OSError):
            folder.rmdir()


def inside(folder: Path, words: Sequence[str | Path]) -> list[str | Path]:
    """The words that run a program in a group."""
    return ["sh", "-c", 'echo $$ >"$0" && exec "$@"', folder / "cgroup.procs", *words]
