"""The machine as part of the result (law 11): the facts that decide what a measurement means.

Everything is read from the kernel's files; a fact this machine does not state is ``None``.
"""

from __future__ import annotations

import os
import platform
import re
import resource
from pathlib import Path

from freestone import control_groups
from freestone.records.identity import UNKNOWN, Fact, hashed, identity
from freestone.records.schema import Machine

_BOOT = Path("proc/sys/kernel/random/boot_id")

_USUAL_STACK_BYTES = 8 << 20


def describe(root: Path = Path("/")) -> Machine:
    """The machine this process runs on.

    Args:
        root: where ``proc``, ``sys`` and ``etc`` are looked for.
    """
    facts = _facts(root)
    return Machine(id=identity(facts), facts=facts)


def changed(before: Machine, root: Path = Path("/")) -> str | None:
    """What of the machine can be set while it runs and is not what it was, in one line; None where all is.

    Args:
        before: the machine as it was described.
        root: where ``proc``, ``sys`` and ``etc`` are looked for.
    """
    for name, now in _settable(root).items():
        was = before.facts.get(name)
        if name in before.facts and was != now:
            return f"{name} of the machine was {was} and is {now}"
    return None


def _settable(root: Path) -> dict[str, Fact]:
    """The identifying facts that somebody may set at any time."""
    thp = root / "sys/kernel/mm/transparent_hugepage"
    return {
        "cores_allowed": len(os.sched_getaffinity(0)),
        "governor": _text(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "turbo": _turbo(root),
        "thp": chosen(_text(thp / "enabled")),
        "thp_defrag": chosen(_text(thp / "defrag")),
        "mthp": _mthp(thp),
        "overcommit": _integer(_text(root / "proc/sys/vm/overcommit_memory")),
        "cgroup_cpu_max": control_groups.cpu(root),
        "cgroup_memory_max": control_groups.tightest_memory(root),
        "jemalloc_conf": _link(root / "etc/malloc.conf"),
        "limits": _limits(),
    }


def _facts(root: Path) -> dict[str, Fact]:
    cpuinfo = _text(root / "proc/cpuinfo") or ""
    cpu0 = root / "sys/devices/system/cpu/cpu0"
    return {
        **_host(root),
        "cpu": _cpu_model(cpuinfo),
        "architecture": platform.machine(),
        "cores_online": os.cpu_count(),
        **_settable(root),
        **_caches(cpu0 / "cache"),
        "memory_kib": _memory_kib(root),
        "page_size": os.sysconf("SC_PAGE_SIZE"),
        "kernel": platform.release(),
        "max_map_count": _integer(_text(root / "proc/sys/vm/max_map_count")),
        "aslr": _integer(_text(root / "proc/sys/kernel/randomize_va_space")),
        "swap": _swap(root),
        "libc": " ".join(platform.libc_ver()).strip() or None,
        "distribution": _distribution(root),
        "virtualised": bool(re.search(r"^flags\b.*\bhypervisor\b", cpuinfo, re.MULTILINE)),
    }


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None


def _limits() -> str | None:
    """What a shell may have set for its programs, as in ``stack=unlimited, nice=5``; None where all is as usual."""
    usual = {
        "address_space": (resource.RLIMIT_AS, resource.RLIM_INFINITY),
        "data": (resource.RLIMIT_DATA, resource.RLIM_INFINITY),
        "stack": (resource.RLIMIT_STACK, _USUAL_STACK_BYTES),
    }
    soft = {name: resource.getrlimit(kind)[0] for name, (kind, _) in usual.items()}
    told = [f"{name}={_bytes(soft[name])}" for name, (_, value) in usual.items() if soft[name] != value]
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    return ", ".join(told + ([f"nice={nice}"] if nice else [])) or None


def _bytes(limit: int) -> str:
    return "unlimited" if limit == resource.RLIM_INFINITY else str(limit)


def _link(path: Path) -> str | None:
    """Where a symbolic link points to: jemalloc reads its settings from the name of one."""
    try:
        return os.readlink(path)
    except OSError:
        return None


def _integer(text: str | None) -> int | None:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


def chosen(text: str | None) -> str | None:
    """The word in brackets of a kernel choice such as ``always [madvise] never``."""
    found = re.search(r"\[([^\]]+)\]", text or "")
    return found[1] if found else text


def _host(root: Path) -> dict[str, Fact]:
    """Which machine it is, as hashes, so that results can be shown around without naming it.

    Images of containers and of disks have no identity, or say that they have none yet. Then it is told by the host's
    name, which is a container's own, and by the boot, which all containers of a machine have in common.
    """
    known = _text(root / "etc/machine-id")
    by_identity = known not in (None, UNKNOWN)
    boot = _text(root / _BOOT)
    return {
        "host": hashed("host", known if by_identity else platform.node()),
        "host_by": "identity" if by_identity else "name",
        "boot": hashed("boot", boot),
    }


def _cpu_model(cpuinfo: str) -> str | None:
    named = re.search(r"^(?:model name|Model|cpu model|Processor)\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    if named:
        return named[1].strip()
    # arm64 kernels give numbers only.
    numbers = [re.search(rf"^CPU {what}\s*:\s*(\S+)", cpuinfo, re.MULTILINE) for what in ("implementer", "part")]
    if all(numbers):
        return "implementer {} part {}".format(*(found[1] for found in numbers if found))
    return platform.processor() or None


def _caches(folder: Path) -> dict[str, Fact]:
    sizes: dict[str, Fact] = {"cache_l1d": None, "cache_l2": None, "cache_l3": None}
    for index in sorted(folder.glob("index*")):
        level, kind = _text(index / "level"), _text(index / "type")
        name = "cache_l1d" if level == "1" and kind == "Data" else f"cache_l{level}"
        if name in sizes and kind in ("Data", "Unified"):
            sizes[name] = _text(index / "size")
    return sizes


def _turbo(root: Path) -> bool | None:
    cpu = root / "sys/devices/system/cpu"
    no_turbo = _text(cpu / "intel_pstate/no_turbo")
    if no_turbo is not None:
        return no_turbo == "0"
    boost = _text(cpu / "cpufreq/boost")
    return None if boost is None else boost == "1"


def _memory_kib(root: Path) -> int | None:
    found = re.search(r"^MemTotal:\s*(\d+) kB", _text(root / "proc/meminfo") or "", re.MULTILINE)
    # Virtual machines are given a few pages more or less from one start to the next.
    return round(int(found[1]) / 65536) * 65536 if found else None


def folios(thp: Path) -> dict[int, str]:
    """The sizes of transparent huge pages, in KiB and ascending, each with what it is set to.

    Args:
        thp: folder of the kernel's switches of huge pages.
    """
    found: dict[int, str] = {}
    for folder in thp.glob("hugepages-*kB"):
        size = folder.name.removeprefix("hugepages-").removesuffix("kB")
        choice = chosen(_text(folder / "enabled"))
        if size.isdigit() and choice is not None:
            found[int(size)] = choice
    return dict(sorted(found.items()))


def _mthp(thp: Path) -> str | None:
    """Sizes of transparent huge pages that are not off: ``64kB=madvise 2048kB=inherit``; ``off`` when all are."""
    sizes = [f"{size}kB={choice}" for size, choice in folios(thp).items() if choice != "never"]
    return " ".join(sizes) or ("off" if (thp / "enabled").exists() else None)


def _swap(root: Path) -> bool | None:
    text = _text(root / "proc/swaps")
    return None if text is None else len(text.splitlines()) > 1


def _distribution(root: Path) -> str | None:
    found = re.search(r'^PRETTY_NAME="?([^"\n]+)"?$', _text(root / "etc/os-release") or "", re.MULTILINE)
    return found[1] if found else None
