"""What a workload takes of a machine's memory and disk, what is free there, and whether that is enough."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from freestone import control_groups

MIB = 1 << 20


@dataclass(frozen=True)
class Room:
    """MiB of memory, and of disk below a folder. Free: None where the machine does not say. Needed: None for little."""

    memory_mib: int | None = None
    disk_mib: int | None = None


def lack(needed: Room, free: Room, folder: str) -> str | None:
    """What of the needed is not free, with both numbers; None where all of it is, or is not known.

    Args:
        folder: where the disk is needed.
    """
    lacks = [
        f"{need:,} MiB {where}, where {there:,} MiB are free"
        for need, there, where in (
            (needed.memory_mib, free.memory_mib, "of memory"),
            (needed.disk_mib, free.disk_mib, f"of disk below {folder}"),
        )
        if need is not None and there is not None and need > there
    ]
    return "it needs " + " and ".join(lacks) if lacks else None


def free(folder: Path, *, root: Path = Path("/")) -> Room:
    """What is free now: memory that the kernel calls available and that no group of this process forbids; disk.

    Args:
        folder: where the disk is asked.
        root: where ``proc`` and ``sys`` are looked for.
    """
    limits = [_available(root), *_groups(root)]
    known = [each for each in limits if each is not None]
    return Room(min(known) // MIB if known else None, _disk(folder))


def _available(root: Path) -> int | None:
    found = re.search(r"^MemAvailable:\s*(\d+) kB", _text(root / "proc/meminfo"), re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _groups(root: Path) -> Iterator[int]:
    """Bytes that each control group may still take, up to the roots."""
    for group in control_groups.memory(root):
        if group.limit is not None and group.used is not None:
            yield max(0, group.limit - max(0, group.used - group.cached))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _disk(folder: Path) -> int | None:
    try:
        status = os.statvfs(folder)
    except OSError:
        return None
    return status.f_bavail * status.f_frsize // MIB
