"""What a workload takes of a machine's memory and disk, what is free there, and whether that is enough."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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


def _groups(root: Path) -> Iterator[int | None]:
    """Bytes that each control group may still take, of both hierarchies, up to their roots."""
    cgroups = root / "sys/fs/cgroup"
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, group = [*line.split(":", 2), "", ""][:3]
        if controllers == "":
            for mount in (cgroups, cgroups / "unified"):
                yield from _upwards(mount, group, "memory.max", "memory.current", "")
        elif "memory" in controllers.split(","):
            mount = cgroups / "memory"
            yield from _upwards(mount, group, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_")


def _upwards(mount: Path, group: str, limit: str, usage: str, prefix: str) -> Iterator[int | None]:
    place = mount / group.lstrip("/")
    for folder in (place, *place.parents):
        most, used = _number(folder / limit), _number(folder / usage)
        if most is not None and used is not None:
            # The page cache is counted as used, and given up before anything fails.
            stat = dict(re.findall(r"^(\w+) (\d+)$", _text(folder / "memory.stat"), re.MULTILINE))
            cached = sum(int(stat.get(f"{prefix}{kind}_file", 0)) for kind in ("inactive", "active"))
            yield max(0, most - max(0, used - cached))
        if folder == mount:
            return


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):  # a group's name with a NUL in it
        return ""


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if re.fullmatch("[0-9]+", text) else None


def _disk(folder: Path) -> int | None:
    try:
        status = os.statvfs(folder)
    except OSError:
        return None
    return status.f_bavail * status.f_frsize // MIB
