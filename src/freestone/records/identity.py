"""What makes a machine the one that it is, among the facts that are recorded of it. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Final

Fact = str | int | float | bool | None

IDENTIFYING: Final = (
    "host",
    "cpu",
    "architecture",
    "cores_online",
    "cores_allowed",
    "cache_l1d",
    "cache_l2",
    "cache_l3",
    "governor",
    "turbo",
    "memory_kib",
    "page_size",
    "kernel",
    "thp",
    "thp_defrag",
    "mthp",
    "overcommit",
    "cgroup_cpu_max",
    "cgroup_memory_max",
    "libc",
    "virtualised",
)
"""The facts whose difference makes two results incomparable; their hash is the machine's ``id``."""

MADE_KNOWN: Final = ("jemalloc_conf", "limits")
"""Facts that identify too, where they are stated: most machines have none, and their results stay comparable."""

UNKNOWN: Final = "uninitialized"
"""What ``/etc/machine-id`` says on a machine that was never booted by systemd, as an image."""


def identity(facts: Mapping[str, Fact]) -> str:
    """Sixteen hex digits that are equal exactly when all :data:`IDENTIFYING` facts are."""
    comparable = {name: facts.get(name) for name in IDENTIFYING}
    comparable |= {name: facts[name] for name in MADE_KNOWN if facts.get(name) is not None}
    return hashlib.sha256(json.dumps(comparable, sort_keys=True).encode()).hexdigest()[:16]


def hashed(what: str, text: str | None) -> str | None:
    """What stands for a text that is shown to nobody; None for none.

    Args:
        what: it is of, so that equal texts of two things are not equal.
    """
    return hashlib.sha256(f"freestone {what} {text}".encode()).hexdigest()[:12] if text else None
