"""What of a suite is measured here: what the user picks of it, and what this machine has the programs for."""

from __future__ import annotations

import difflib
import fnmatch
import glob
import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from freestone import native
from freestone.records.schema import Workload
from freestone.suites import expansion, inputs
from freestone.suites.expansion import Planned
from freestone.suites.schema import Need, Setting, Suite, SuiteError

NO_SETTING = "none"


@dataclass(frozen=True)
class Absent:
    """A workload that cannot be measured here."""

    name: str
    reason: str


@dataclass(frozen=True)
class Selection:
    """The workloads to measure, and those that were asked for and cannot be."""

    workloads: list[Workload]
    absent: list[Absent]


def select(
    suites: Sequence[Suite],
    *,
    only: Sequence[str] = (),
    quick: bool = False,
    idle_s: int | None = None,
    idle_rounds: int | None = None,
    directory: str,
) -> Selection:
    """The workloads of one or several suites that can be measured here.

    Args:
        only: patterns (``*``, ``?``, ``[...]``) of names, any of which suffices; none for all.
        quick: take the quick values.
        idle_s: seconds that programs which can sleep do so after their work.
        idle_rounds: rounds, the first ones, in which they do; None for all.
        directory: where the programs run.

    Raises:
        SuiteError: a pattern that matches nothing, a sleep that cannot be, or suites that do not hold together.
    """
    if idle_rounds is not None and (idle_s is None or idle_rounds < 1):
        raise SuiteError(f"--idle-rounds is a number of rounds from 1 on, beside --idle, not {idle_rounds}")
    planned = _picked(expansion.expand(suites, places(), quick=quick, idle_s=idle_s, find=_found), only)
    workloads: list[Workload] = []
    absent: list[Absent] = []
    for each in planned:
        missing = _missing(each)
        if missing:
            absent.append(Absent(each.name, missing))
            continue
        workloads.append(
            Workload(
                name=each.name,
                command=each.command,
                environment=each.environment,
                directory=directory,
                reads=each.reads,
                counted=each.counted,
                idle=each.idle,
                idle_rounds=idle_rounds if each.idle else None,
                counting=each.counting,
            )
        )
    return Selection(workloads, absent)


def settings(suites: Sequence[Suite], asked: Sequence[str] | None = None) -> list[Setting]:
    """The settings of one or several suites.

    Args:
        asked: names of those to take; None for all, ``none`` for none.

    Raises:
        SuiteError: a name that no suite has, or two different settings of one name.
    """
    found: list[Setting] = []
    for setting in (each for suite in suites for each in suite.setting):
        if setting not in found:  # the same in two suites is one
            found.append(setting)
    names = [setting.name for setting in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SuiteError(f"two different settings are named '{twice}'")
    if asked is None:
        return found
    wanted = [name for given in asked for name in given.split(",") if name not in ("", NO_SETTING)]
    for name in wanted:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            there = f"there are {', '.join(names)}" if names else "these suites have none"
            raise SuiteError(f"no setting is called '{name}'; " + (f"did you mean {near[0]}?" if near else there))
    return [setting for setting in found if setting.name in wanted]


def prepare(workloads: Sequence[Workload]) -> None:
    """Make the inputs that these workloads read.

    Raises:
        SuiteError: they cannot be made.
    """
    programs, kept = _programs(), inputs.folder(_programs())
    if any(str(kept) in word for workload in workloads for word in (*workload.command, *(workload.counting or ()))):
        inputs.ensure(programs, kept)


def places() -> dict[str, str]:
    """What the placeholders of every suite stand for here."""
    cores = len(os.sched_getaffinity(0))
    return {
        "workloads": str(_programs()),
        "inputs": str(inputs.folder(_programs())),
        "python": sys.executable,
        "cores": str(cores),
        "4cores": str(4 * cores),
    }


def _programs() -> Path:
    """The folder of the installed workload programs; it need not exist."""
    return native.folder("workloads")


def _found(need: Need) -> str | None:
    """Where a program is: the highest version in its folder, else in PATH."""
    if need.folder is not None:
        for folder in sorted(glob.glob(need.folder), key=_version, reverse=True):
            found = shutil.which(need.program, path=folder)
            if found is not None:
                return found
    return shutil.which(need.program)


def _version(path: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path)]


def _picked(planned: Sequence[Planned], only: Sequence[str]) -> list[Planned]:
    for pattern in only:
        names = [each.name for each in planned]
        if not fnmatch.filter(names, pattern):
            near = difflib.get_close_matches(pattern.strip("*"), names, n=1)
            hint = f"did you mean {near[0]}?" if near else "--list shows their names"
            raise SuiteError(f"no workload matches '{pattern}'; {hint}")
    return [each for each in planned if not only or any(fnmatch.fnmatchcase(each.name, one) for one in only)]


def _missing(planned: Planned) -> str | None:
    """Why no machine can measure it, or what it lacks here and how to get that; None when it can be measured."""
    if planned.cannot is not None:
        return planned.cannot
    for need in planned.needs:
        if _found(need) is None:
            return f"{need.program} is not here; Debian's package {need.package} brings it"
    for word in planned.command:
        if word.startswith(f"{_programs()}/") and not Path(word).is_file():
            return f"{Path(word).name} is not built; run 'make build' or reinstall freestone"
    if shutil.which(planned.command[0]) is None:
        return f"{planned.command[0]} is not here"
    return None
