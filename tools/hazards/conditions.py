"""What a hazard may need of the machine: control groups, the policy of huge pages, programs. Each is put back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from hazards.catalogue import Hazard

THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
CGROUPS = Path("/sys/fs/cgroup")
CGROUP_BYTES = 192 << 20
"""The limit of the group a program that needs one may move into."""


class Unmet(Exception):
    """Why the machine cannot do it, in one line."""


def missing_commands(names: Sequence[str]) -> str | None:
    """The programs that are not here, in one line."""
    missing = [name for name in names if shutil.which(name) is None]
    return f"there is no {', no '.join(missing)} here" if missing else None


def own_group(table: str) -> tuple[int, str] | None:
    """Version and path of the group this process's memory is counted in, from the text of /proc/self/cgroup."""
    unified = None
    for line in table.splitlines():
        hierarchy, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return 1, path
        if hierarchy == "0":
            unified = (2, path)
    return unified


@contextmanager
def met(hazard: Hazard) -> Iterator[dict[str, str]]:
    """What the hazard needs, for as long as this is open, as variables for its program.

    Raises:
        Unmet: it cannot be had.
    """
    reason = missing_commands(hazard.commands)
    if reason:
        raise Unmet(reason)
    if hazard.needs == "memory-cgroup":
        with _group() as folder:
            yield {"HAZARD_CGROUP": str(folder)}
    elif hazard.needs:
        with _policy_put_back():
            if hazard.needs == "thp-always":
                THP.write_text("always", encoding="ascii")
            yield {"HAZARD_THP": str(THP)}
    else:
        yield {}


@contextmanager
def _group() -> Iterator[Path]:
    """A group below our own, so that no limit of ours is left behind by moving there."""
    found = own_group(Path("/proc/self/cgroup").read_text(encoding="utf-8"))
    if found is None:
        raise Unmet("no control group counts memory here")
    version, path = found
    parent = CGROUPS / ("memory" if version == 1 else "") / path.lstrip("/")
    folder = parent / f"freestone-hazard-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        raise Unmet(f"no control group can be made here: {error.strerror}") from None
    try:
        limit = folder / ("memory.limit_in_bytes" if version == 1 else "memory.max")
        try:
            limit.write_text(str(CGROUP_BYTES), encoding="ascii")
        except OSError as error:
            raise Unmet(f"a control group here takes no limit of memory: {error.strerror}") from None
        yield folder
    finally:
        with suppress(OSError):
            folder.rmdir()


@contextmanager
def _policy_put_back() -> Iterator[None]:
    if not os.access(THP, os.W_OK):
        raise Unmet("the policy of huge pages cannot be set here")
    before = THP.read_text(encoding="ascii").split("[")[1].split("]")[0]
    try:
        yield
    finally:
        THP.write_text(before, encoding="ascii")
