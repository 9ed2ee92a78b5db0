"""The rules under which a program runs here: C library, kernel, huge pages and folios, limits of its control group."""

from __future__ import annotations

import os
import platform as python_platform
import re
from pathlib import Path
from typing import Final

from freestone.doctor.observations import Platform

_SYS: Final = Path("/sys/kernel/mm/transparent_hugepage")
_CGROUPS: Final = Path("/sys/fs/cgroup")


def describe(libc: str | None, *, system: Path = _SYS, groups: Path = _CGROUPS) -> Platform:
    """Everything that can be read without rights.

    Args:
        libc: whose C library the program has: glibc, musl; None where that is not known.
        system: folder of the kernel's switches of huge pages.
        groups: folder of control groups (version 2).
    """
    group = _group(groups)
    return Platform(
        libc="musl" if libc == "musl" else "glibc" if libc in ("glibc", None) else "other",
        libc_version=python_platform.libc_ver()[1] or None,
        machine=python_platform.machine(),
        kernel=python_platform.release(),
        cpus=len(os.sched_getaffinity(0)),
        online_cpus=os.cpu_count() or 1,
        page_kib=os.sysconf("SC_PAGE_SIZE") // 1024,
        huge_pages=chosen(_read(system / "enabled")),
        folios=_folios(system),
        memory_limit_kib=_limit_kib(group, groups),
        memory_used_kib=_kib(_read(group / "memory.current")),
        pressure_some=_pressure(_read(group / "memory.pressure")),
        overcommit=_whole(_read(Path("/proc/sys/vm/overcommit_memory"))),
    )


def chosen(text: str | None) -> str | None:
    """The word in brackets of one of the kernel's switches: ``always [madvise] never``."""
    found = re.search(r"\[(\w+)\]", text or "")
    return None if found is None else found[1]


def _folios(system: Path) -> dict[int, str]:
    found = {}
    for folder in sorted(system.glob("hugepages-*kB")):
        size = re.fullmatch(r"hugepages-(\d+)kB", folder.name)
        set_to = chosen(_read(folder / "enabled"))
        if size is not None and set_to is not None:
            found[int(size[1])] = set_to
    return dict(sorted(found.items()))


def _group(groups: Path) -> Path:
    """This process's control group."""
    for line in (_read(Path("/proc/self/cgroup")) or "").splitlines():
        number, _, rest = line.partition(":")
        if number == "0":
            return groups / rest.partition(":")[2].lstrip("/")
    return groups


def _limit_kib(group: Path, groups: Path) -> int | None:
    """The smallest limit of a control group and all above it."""
    found = []
    for folder in [group, *group.parents]:
        if folder != groups and groups not in folder.parents:
            break
        found += [limit for name in ("memory.max", "memory.high") if (limit := _kib(_read(folder / name))) is not None]
    return min(found, default=None)


def _pressure(text: str | None) -> float | None:
    found = re.search(r"^some .*?avg60=([\d.]+)", text or "", re.MULTILINE)
    return None if found is None else float(found[1]) / 100


def _kib(text: str | None) -> int | None:
    number = _whole(text)
    return None if number is None else number >> 10


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.strip().isdigit() else None


def _read(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
