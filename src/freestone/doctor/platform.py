"""The rules under which a program runs here: C library, kernel, huge pages and folios, limits of its control group."""

from __future__ import annotations

import os
import platform as python_platform
import re
from pathlib import Path

from freestone import control_groups, machine
from freestone.doctor.observations import Platform


def describe(libc: str | None, *, root: Path = Path("/"), process: int | None = None) -> Platform:
    """Everything that can be read without rights.

    Args:
        libc: whose C library the program has: glibc, musl; None where that is not known.
        root: where ``proc`` and ``sys`` are looked for.
        process: whose control group counts; None for this one's.
    """
    switches = root / "sys/kernel/mm/transparent_hugepage"
    groups = control_groups.memory(root, "self" if process is None else process)
    own = next((group for group in groups if group.used is not None), None)
    set_to = machine.chosen(_read(switches / "enabled"))
    limits = [limit for group in groups for limit in (group.limit, group.slowed_above) if limit is not None]
    return Platform(
        libc="musl" if libc == "musl" else "glibc" if libc in ("glibc", None) else "other",
        libc_version=python_platform.libc_ver()[1] or None,
        machine=python_platform.machine(),
        kernel=python_platform.release(),
        cpus=len(os.sched_getaffinity(process or 0)),
        online_cpus=os.cpu_count() or 1,
        page_kib=os.sysconf("SC_PAGE_SIZE") // 1024,
        huge_pages=set_to,
        folios=machine.folios(switches),
        memory_limit_kib=min(limits) >> 10 if limits else None,
        memory_used_kib=own.used >> 10 if own is not None and own.used is not None else None,
        pressure_some=_pressure(own.pressure) if own is not None else None,
        overcommit=_whole(_read(root / "proc/sys/vm/overcommit_memory")),
    )


def _pressure(text: str | None) -> float | None:
    found = re.search(r"^some .*?avg60=([\d.]+)", text or "", re.MULTILINE)
    return None if found is None else float(found[1]) / 100


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.strip().isdigit() else None


def _read(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
