"""What a hazard may need of the machine: control groups, the policy of huge pages, programs. Each is put back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import control_group
from control_group import NoGroup
from hazards.catalogue import Hazard

THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
CGROUP_BYTES = 192 << 20
"""The limit of the group a program that needs one may move into."""


class Unmet(Exception):
    """Why the machine cannot do it, in one line."""


def missing_commands(names: Sequence[str]) -> str | None:
    """The programs that are not here, in one line."""
    missing = [name for name in names if shutil.which(name) is None]
    return f"there is no {', no '.join(missing)} here" if missing else None


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
        with ExitStack() as until:
            try:
                folder = until.enter_context(control_group.limited(CGROUP_BYTES))
            except NoGroup as error:
                raise Unmet(str(error)) from None
            yield {"HAZARD_CGROUP": str(folder)}
    elif hazard.needs:
        with _policy_put_back():
            if hazard.needs == "thp-always":
                THP.write_text("always", encoding="ascii")
            yield {"HAZARD_THP": str(THP)}
    else:
        yield {}


@contextmanager
def _policy_put_back() -> Iterator[None]:
    if not os.access(THP, os.W_OK):
        raise Unmet("the policy of huge pages cannot be set here")
    before = THP.read_text(encoding="ascii").split("[")[1].split("]")[0]
    try:
        yield
    finally:
        THP.write_text(before, encoding="ascii")
