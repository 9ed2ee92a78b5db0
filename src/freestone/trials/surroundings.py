"""Where no census can be taken, the one option of these surroundings that allows it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from freestone.trials.launch import Permissions

Surroundings = Literal["docker", "podman", "kubernetes", "host"]

_PARANOID: Final = Path("proc/sys/kernel/perf_event_paranoid")
_ALLOWED_PARANOID: Final = 2
"""Up to here the kernel tells every user of the programs that he starts himself."""

_OPTION: Final = {
    "docker": "start the container with: docker run --cap-add=SYS_PTRACE",
    "podman": "start the container with: podman run --cap-add=SYS_PTRACE",
    "kubernetes": 'give the container: securityContext: {capabilities: {add: ["SYS_PTRACE"]}}',
}


def surroundings(environment: Mapping[str, str] = os.environ, root: Path = Path("/")) -> Surroundings:
    """In what kind of container this process runs, by the marks that each leaves."""
    if "KUBERNETES_SERVICE_HOST" in environment:
        return "kubernetes"  # first: it runs its containers by one of the others
    if (root / "run/.containerenv").exists():
        return "podman"
    return "docker" if (root / ".dockerenv").exists() else "host"


def obstacle(permissions: Permissions, where: Surroundings, root: Path = Path("/")) -> str | None:
    """Why nothing can be proved here and what to do, in one line; None where a census can be taken."""
    if permissions.perf or permissions.ptrace:
        return None
    return (
        f"nothing can be proved here, since both perf and ptrace are refused; {_option(where, root)} "
        "(docs/guide/containers.md)"
    )


def _option(where: Surroundings, root: Path) -> str:
    if where != "host":
        return _OPTION[where]
    try:
        paranoid = int((root / _PARANOID).read_text())
    except (OSError, ValueError):
        paranoid = 0
    if paranoid > _ALLOWED_PARANOID:
        return f"as root: sysctl kernel.perf_event_paranoid={_ALLOWED_PARANOID} (it is {paranoid})"
    return "a sandbox forbids them: let it allow the system call ptrace, or run outside of it"
