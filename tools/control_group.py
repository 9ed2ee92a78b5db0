"""A control group with a limit of memory, for as long as a program runs in it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

GROUPS: Final = Path("/sys/fs/cgroup")
LIMITS: Final = ("memory.max", "memory.limit_in_bytes")
"""Of version 2, and of version 1."""


class ControlGroup:
    """None at all where there is no limit: then a program runs where it is.

    Args:
        limit_mib: MiB that all in it may have together; None for no group.
        groups: where the kernel shows control groups.

    Raises:
        OSError: on entering, where no group can be made; it says which.
    """

    def __init__(self, limit_mib: int | None, groups: Path = GROUPS) -> None:
        self._limit_mib = limit_mib
        self._folder = (groups / "memory" if (groups / "memory").is_dir() else groups) / f"freestone-{os.getpid()}"

    def __enter__(self) -> Self:
        if self._limit_mib is not None:
            self._folder.mkdir()
            limit = next((self._folder / name for name in LIMITS if (self._folder / name).exists()), None)
            if limit is None:
                self._folder.rmdir()
                raise OSError(f"{self._folder}: this control group has no limit of memory")
            limit.write_text(f"{self._limit_mib << 20}\n", encoding="ascii")
        return self

    def inside(self, words: Sequence[str | Path]) -> list[str | Path]:
        """The words that run a program in it."""
        if self._limit_mib is None:
            return list(words)
        return ["sh", "-c", 'echo $$ >"$0" && exec "$@"', self._folder / "cgroup.procs", *words]

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._limit_mib is not None:
            self._folder.rmdir()
