"""Whether the kernel has ended a program because the limit of a control group was reached, by the group's counters."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from freestone import control_groups
from freestone.control_groups import Shortage

_ROOT: Final = Path("/")


@dataclass(frozen=True)
class Before:
    """What the counters of this process's groups said before a program was started, which is then in them too."""

    shortages: list[Shortage]

    @classmethod
    def now(cls, root: Path = _ROOT) -> Self:
        """As they are now."""
        return cls(control_groups.shortages(root))

    def cause(self, root: Path = _ROOT) -> str | None:
        """Why the kernel has ended a process here since then, as the end of "killed by SIGKILL"; None where it has not.

        It has where the counter of the own group has risen. The limit is that of the first group on the way up that
        came into its way meanwhile; where none did, the whole machine was short of memory.
        """
        after = control_groups.shortages(root)
        if len(after) != len(self.shortages) or not after:
            return None  # it was moved to another group
        pairs = list(zip(self.shortages, after, strict=True))
        own_before, own_now = pairs[0]  # those above count what neighbours lost as well
        if not _rose(own_before.killed, own_now.killed):
            return None
        hit = (now.limit for before, now in pairs if now.limit is not None and _rose(before.reached, now.reached))
        limit = next(hit, None)
        if limit is None:
            return " as the machine's memory ran out"
        own = _resident_mib(root)
        lab = f", with {own} MiB resident" if own is not None else ""
        return f" as its control group's limit of {_mib(limit)} MiB was reached (the lab is in that group too{lab})"


def _rose(before: int | None, now: int | None) -> bool:
    return before is not None and now is not None and now > before


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.4g}" if size < 1 << 30 else f"{size >> 20:,}"


@functools.cache
def _resident_mib(root: Path) -> int | None:
    """Of this process, looked up once: what is said of several runs is the same then, and stands in one line."""
    try:
        status = (root / "proc/self/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
    return int(found[1]) >> 10 if found else None
