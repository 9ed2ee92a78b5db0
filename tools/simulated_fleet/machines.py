"""Kinds of machines and what they say: made up, plausible, and unlike each other in which allocator is best.

No figure here was measured anywhere.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from freestone.records.identity import identity
from freestone.records.schema import Machine

BASELINE: Final = "glibc"


@dataclass(frozen=True)
class MachineKind:
    """What machines of a kind have in common."""

    name: str
    facts: Mapping[str, str | int]
    seconds: float
    """What a run takes under the baseline."""
    time: Mapping[str, float]
    """Allocator -> its true ratio to the baseline in time."""
    memory: Mapping[str, float]
    """The same in peak memory."""
    share: int
    """So many of a hundred machines are of this kind."""


def _facts(cpu: str, cores: int, page_kib: int, thp: str, libc: str) -> dict[str, str | int]:
    return {
        "cpu": cpu,
        "architecture": "x86_64" if page_kib == 4 and "Neoverse" not in cpu else "aarch64",
        "cores_online": cores,
        "cores_allowed": cores,
        "page_size": page_kib * 1024,
        "thp": thp,
        "mthp": "off",
        "overcommit": 0,
        "kernel": "6.1.0",
        "libc": libc,
    }


KINDS: Final = (
    MachineKind(
        "epyc",
        _facts("AMD EPYC 9554 64-Core Processor", 64, 4, "madvise", "glibc 2.36"),
        2.1,
        {"freestone": 0.84, "mimalloc": 0.87, "jemalloc": 0.95, "tcmalloc": 0.93},
        {"freestone": 0.91, "mimalloc": 1.10, "jemalloc": 0.97, "tcmalloc": 1.08},
        35,
    ),
    MachineKind(
        "xeon",
        _facts("Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz", 40, 4, "always", "glibc 2.31"),
        3.0,
        {"freestone": 0.88, "mimalloc": 0.92, "jemalloc": 0.86, "tcmalloc": 0.90},
        {"freestone": 1.02, "mimalloc": 1.15, "jemalloc": 0.94, "tcmalloc": 1.12},
        25,
    ),
    MachineKind(
        "grace",
        _facts("Neoverse-V2", 72, 64, "madvise", "glibc 2.39"),
        1.8,
        {"freestone": 0.93, "mimalloc": 0.88, "jemalloc": 1.07, "tcmalloc": 1.11},
        {"freestone": 0.96, "mimalloc": 1.21, "jemalloc": 1.18, "tcmalloc": 1.30},
        20,
    ),
    MachineKind(
        "altra",
        _facts("Neoverse-N1", 80, 4, "madvise", "glibc 2.36"),
        3.4,
        {"freestone": 0.86, "mimalloc": 0.90, "jemalloc": 0.97, "tcmalloc": 0.92},
        {"freestone": 0.92, "mimalloc": 1.08, "jemalloc": 0.99, "tcmalloc": 1.06},
        15,
    ),
    MachineKind(
        "board",
        _facts("Raspberry Pi 5 Model B Rev 1.0", 4, 16, "never", "glibc 2.36"),
        7.5,
        {"freestone": 0.91, "mimalloc": 0.97, "jemalloc": 1.04, "tcmalloc": 1.02},
        {"freestone": 0.90, "mimalloc": 1.12, "jemalloc": 1.05, "tcmalloc": 1.15},
        5,
    ),
)

ODD: Final = 0.02
"""So many machines are not like their kind: something else runs on them, and hides what there is to see."""


def of_place(number: int) -> MachineKind:
    """The kind of a machine by its number, from 0: any hundred of them have the shares, and so has any twenty."""
    drawn = (number * 37) % 100  # every number below a hundred once
    for kind in KINDS:
        drawn -= kind.share
        if drawn < 0:
            return kind
    return KINDS[-1]


def machine(kind: MachineKind, host: str) -> Machine:
    """One machine of a kind."""
    facts: dict[str, str | int | float | bool | None] = {**kind.facts, "host": host}
    return Machine(id=identity(facts), facts=facts)


def spread(source: random.Random) -> float:
    """How much its times vary from run to run, as the deviation of a logarithm."""
    return 0.25 if source.random() < ODD else source.uniform(0.003, 0.009)
