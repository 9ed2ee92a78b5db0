"""Control groups of both of the kernel's hierarchies: what a process's group and those above it limit and hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

NO_LIMIT = 1 << 60
"""The first hierarchy states a limit always: one from here on, in bytes, is none."""


@dataclass(frozen=True)
class Memory:
    """What one group says of memory, in bytes; None where it says nothing or sets no limit."""

    limit: int | None = None
    slowed_above: int | None = None
    used: int | None = None
    cached: int = 0
    """Of what is used, pages of files, which are given up before anything fails."""
    pressure: str | None = None
    """The text of ``memory.pressure``; the first hierarchy has none."""


@dataclass(frozen=True)
class Shortage:
    """How often memory was short in one group so far, by the kernel's counters; None where it does not say.

    ``killed`` counts processes of the group that the kernel has ended for want of memory, whosesoever limit it was;
    ``reached`` counts when the group's own limit was in the way.
    """

    limit: int | None = None
    killed: int | None = None
    reached: int | None = None


def shortages(root: Path, process: int | str = "self") -> list[Shortage]:
    """Of the group of a process, then of each above it up to the root; empty where nothing is known."""
    return [_shortage(folder, hierarchy) for folder, hierarchy in _of_memory(root, process)]


def memory(root: Path, process: int | str = "self") -> list[Memory]:
    """What the group of a process says, then each above it up to the root; empty where nothing is known.

    Args:
        root: where ``proc`` and ``sys`` are looked for.
    """
    return [_memory(folder, hierarchy) for folder, hierarchy in _of_memory(root, process)]


def cpu(root: Path, process: int | str = "self") -> str | None:
    """The tightest limit of CPU time, as ``quota period`` in microseconds; ``max`` where a group of the second
    hierarchy sets none, None where no group states any."""
    found, stated = [], False
    for hierarchy, mount, group in _places(root, process, "cpu"):
        stated |= hierarchy == 2
        for folder in _upwards(mount, group):
            if hierarchy == 2:
                text = _text(folder / "cpu.max").strip()
            else:
                text = f"{_text(folder / 'cpu.cfs_quota_us').strip()} {_text(folder / 'cpu.cfs_period_us').strip()}"
            if re.fullmatch(r"\d+ [1-9]\d*", text):
                found.append(text)
    return min(found, key=_cores) if found else "max" if stated else None


def tightest_memory(root: Path, process: int | str = "self") -> str | None:
    """The tightest limit of memory, in bytes; ``max`` and None as :func:`cpu` gives them."""
    limits = [each.limit for each in memory(root, process) if each.limit is not None]
    if limits:
        return str(min(limits))
    return "max" if any(hierarchy == 2 for hierarchy, *_ in _places(root, process, "memory")) else None


def _cores(text: str) -> float:
    quota, period = text.split()
    return int(quota) / int(period)


def _places(root: Path, process: int | str, controller: str) -> Iterator[tuple[int, Path, str]]:
    """Hierarchy, its mount, and the process's group there."""
    groups = root / "sys/fs/cgroup"
    for line in _text(root / f"proc/{process}/cgroup").splitlines():
        number, controllers, group = [*line.split(":", 2), "", ""][:3]
        if (number, controllers) == ("0", ""):
            for mount in (groups, groups / "unified"):
                yield 2, mount, group
        elif controller in controllers.split(","):
            yield 1, groups / controller, group


def _of_memory(root: Path, process: int | str) -> Iterator[tuple[Path, int]]:
    """The group of a process where memory is counted, then each above it; its folder and hierarchy."""
    for hierarchy, mount, group in _places(root, process, "memory"):
        for folder in _upwards(mount, group):
            yield folder, hierarchy


def _upwards(mount: Path, group: str) -> Iterator[Path]:
    place = mount / group.lstrip("/")
    for folder in (place, *place.parents):
        yield folder
        if folder == mount:
            return


def _memory(folder: Path, hierarchy: int) -> Memory:
    kinds, prefix = ("inactive_file", "active_file"), "total_" if hierarchy == 1 else ""
    stat = dict(re.findall(r"^(\w+) (\d+)$", _text(folder / "memory.stat"), re.MULTILINE))
    cached = sum(int(stat.get(f"{prefix}{kind}", 0)) for kind in kinds)
    limit = _limit(folder, hierarchy)
    if hierarchy == 1:
        return Memory(limit=limit, used=_number(folder / "memory.usage_in_bytes"), cached=cached)
    return Memory(
        limit=limit,
        slowed_above=_number(folder / "memory.high"),
        used=_number(folder / "memory.current"),
        cached=cached,
        pressure=_text(folder / "memory.pressure") or None,
    )


def _shortage(folder: Path, hierarchy: int) -> Shortage:
    kept = "memory.oom_control" if hierarchy == 1 else "memory.events"
    counts = {name: int(count) for name, count in re.findall(r"^(\w+) (\d+)$", _text(folder / kept), re.MULTILINE)}
    reached = _number(folder / "memory.failcnt") if hierarchy == 1 else counts.get("oom")
    return Shortage(_limit(folder, hierarchy), counts.get("oom_kill"), reached)


def _limit(folder: Path, hierarchy: int) -> int | None:
    if hierarchy == 2:
        return _number(folder / "memory.max")
    limit = _number(folder / "memory.limit_in_bytes")
    return None if limit is None or limit >= NO_LIMIT else limit


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):  # a group's name with a NUL in it
        return ""


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if re.fullmatch("[0-9]+", text) else None
