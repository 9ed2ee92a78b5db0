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
from freestone.records.schema import Input, Workload
from freestone.suites import expansion, inputs, room
from freestone.suites.expansion import Planned
from freestone.suites.room import Room
from freestone.suites.schema import Need, Setting, Suite, SuiteError

NO_SETTING = "none"


@dataclass(frozen=True)
class Absent:
    """A workload, or a size of one, that cannot be measured here."""

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
    free: Room | None = None,
) -> Selection:
    """The workloads of one or several suites that can be measured here.

    Args:
        only: patterns (``*``, ``?``, ``[...]``) of names, any of which suffices; none for all.
        quick: take the quick values.
        idle_s: seconds that programs sleep after their work, or are kept at their end.
        idle_rounds: rounds, the first ones, in which they do; None for all.
        directory: where the programs run.
        free: what may be taken of memory and disk; None for what is free now.

    Raises:
        SuiteError: a pattern that matches nothing, a sleep that cannot be, or suites that do not hold together.
    """
    if idle_rounds is not None and (idle_s is None or idle_rounds < 1):
        raise SuiteError(f"--idle-rounds is a number of rounds from 1 on, beside --idle, not {idle_rounds}")
    planned = expansion.expand(suites, places(), quick=quick, idle_s=idle_s, find=_found)
    chosen = set(matching([each.name for each in planned], only))
    free = room.free(Path(_scratch())) if free is None else free
    workloads: list[Workload] = []
    absent: list[Absent] = []
    for each in planned:
        if each.name not in chosen:
            continue
        missing = _missing(each)
        if missing:
            absent.append(Absent(each.name, missing))
            continue
        fitting, too_large = _fitting(each, free)
        absent += too_large
        if fitting is not None:
            workloads.append(_workload(fitting, directory, idle_s, idle_rounds))
    return Selection(workloads, absent)


def _workload(planned: Planned, directory: str, idle_s: int | None, idle_rounds: int | None) -> Workload:
    entry = planned.entry
    return Workload(
        name=planned.name,
        command=planned.command,
        environment=planned.environment,
        keep_environment=entry.keep_env,
        directory=directory,
        reads=planned.reads,
        counted=planned.counted,
        idle=planned.idle,
        idle_s=idle_s if planned.idle else None,
        rest_s=planned.rest_s,
        idle_rounds=idle_rounds if planned.idle or planned.rest_s else None,
        counting=planned.counting,
        parameters=planned.parameters,
        template=entry.name if planned.parameters else None,
        memory_mib=planned.room.memory_mib,
        disk_mib=planned.room.disk_mib,
        stages=planned.stages,
        warmup=entry.warmup,
        input=None if planned.input is None else Input(file=str(Path(directory, planned.input))),
        survivors="wait" if entry.wait_tree else "allow" if entry.allow_survivors else "fail",
        allow_failures=entry.allow_failures,
        ignore_status=entry.ignore_status,
        output_may_differ=entry.output_may_differ,
        compare_output=planned.compare_output,
    )


def _fitting(planned: Planned, free: Room) -> tuple[Planned | None, list[Absent]]:
    """The largest of a workload's sizes that there is room for, and those that there is not."""
    too_large: list[Absent] = []
    for size in (planned, *planned.smaller):
        lack = room.lack(size.room, free, _scratch())
        if lack is None:
            return size, too_large
        too_large.append(Absent(f"{size.name} with {size.values}" if size.values else size.name, lack))
    return None, too_large


def too_large(workloads: Sequence[Workload], free: Room | None = None) -> list[Absent]:
    """Those of an earlier selection that there is no room for now, with what they need and what is free.

    Args:
        free: what may be taken of memory and disk; None for what is free now.
    """
    free = room.free(Path(_scratch())) if free is None else free
    lacks = ((each.name, room.lack(Room(each.memory_mib, each.disk_mib), free, _scratch())) for each in workloads)
    return [Absent(name, lack) for name, lack in lacks if lack is not None]


def _scratch() -> str:
    """The folder below which programs that need one get theirs."""
    return os.environ.get("TMPDIR") or "/tmp"


def matching(names: Sequence[str], only: Sequence[str]) -> list[str]:
    """Those of the names that match one of the patterns; all where there is no pattern.

    Raises:
        SuiteError: a pattern that matches nothing.
    """
    for pattern in only:
        if not any(fnmatch.fnmatchcase(name, pattern) for name in names):
            near = difflib.get_close_matches(pattern.strip("*"), names, n=1)
            few = f"there are {', '.join(names)}" if len(names) <= 8 else "freestone bench SUITE --list shows the names"
            raise SuiteError(f"no workload matches '{pattern}'; " + (f"did you mean {near[0]}?" if near else few))
    return [name for name in names if not only or any(fnmatch.fnmatchcase(name, pattern) for pattern in only)]


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
    if any(reads_inputs(workload) for workload in workloads):
        programs = _programs()
        inputs.ensure(programs, inputs.folder(programs))


def reads_inputs(workload: Workload) -> bool:
    """Whether a workload reads what :func:`prepare` makes."""
    kept = str(inputs.folder(_programs()))
    read_from = [workload.input.file] if workload.input is not None else []
    return any(kept in word for word in (*workload.command, *(workload.counting or ()), *read_from))


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
    if planned.stages.setup is not None or planned.stages.prepare is not None:
        return None  # they may make what is missing
    made_later = f"{inputs.folder(_programs())}/"
    if planned.input and not planned.input.startswith(made_later) and not Path(planned.input).exists():
        return f"its input {planned.input} is not here"
    if shutil.which(planned.command[0]) is None:
        there = "/" in planned.command[0] and Path(planned.command[0]).exists()
        return f"{planned.command[0]} {'cannot be executed' if there else 'is not here'}"
    return None
