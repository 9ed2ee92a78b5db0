"""Whether results of several folders are of one experiment, so that they may stand side by side. Pure.

Machines and days may differ, and with them the builds of allocators, how many rounds there are and their order: each
result has its own intervals, and none is pooled with another. What was run, and how, has to be the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from freestone.analysis import machines
from freestone.analysis.comparable import Evidence, evidence, workload_apart
from freestone.analysis.same_environment import environments_differ
from freestone.analysis.sides import Side
from freestone.records.schema import Allocator, Configuration, Environment, Experiment, Machine, Workload

_THREADS_PER_CPU: Final = (1, 4)
"""What suites know as ``{cores}`` and ``{4cores}``."""

_ANOTHER_COMMAND: Final = "another command"

_JUDGED: Final = ("name", "command", "environment", "reads", "service", "stages", "warmup", "input")
"""Of a workload: what :func:`freestone.analysis.comparable.workload_apart` judges by its meaning."""

_OF_THE_PLACE: Final = ("directory", "memory_mib", "disk_mib")
"""Of a workload: where it was, and what is asked before it is run."""


@dataclass(frozen=True)
class Alone:
    """One workload of a result, and no more than what tells whether it may stand beside another one."""

    head: Experiment
    """With this workload alone, and without what each result has of its own: for equal ones it is equal."""
    machine: str
    """What is equal for results of one machine."""
    cpus: int | None
    evidence: Evidence


def alone(side: Side, workload: Workload) -> Alone:
    """What tells whether a workload of a result may stand beside that of another."""
    experiment = side.experiment
    told = experiment.environment
    own = {"directory": None, "memory_mib": None, "disk_mib": None}
    head = experiment.model_copy(
        update={
            **{"id": "", "created_at": "", "rounds": 1, "seed": 0, "baseline": "", "time_budget_s": None},
            "command_line": ["freestone", verb(experiment)],
            "machine": Machine(id=""),
            "workloads": [workload.model_copy(update=own)],
            "configurations": [_as_set(each) for each in experiment.configurations],
            "environment": None if told is None else Environment(kept=told.kept, told=told.told),
        }
    )
    return Alone(head, machines.key(experiment.machine), _cpus(experiment.machine), evidence(workload.name, side))


def _as_set(configuration: Configuration) -> Configuration:
    allocator = configuration.allocator.name
    return configuration.model_copy(update={"allocator": Allocator(name=allocator, title=allocator)})


def stands_apart(one: Alone, other: Alone, *, any_build: bool = False) -> str | None:
    """What keeps two results of one workload from standing side by side, in words; None where nothing does.

    Machines may lack configurations that others have, and each may have its own build of the program.

    Args:
        one: what the other is held against.
        other: likewise, of a workload by the same name.
        any_build: whether one machine may have several builds, too.
    """
    first, second = one.head, other.head
    if first.freestone_version != second.freestone_version:
        return f"another version of the lab: {second.freestone_version}, not {first.freestone_version}"
    (mine,), (theirs,) = first.workloads, second.workloads
    if verb(first) == verb(second) == "bench":
        theirs = _as_many_threads(mine, theirs, one.cpus, other.cpus)
    own = any_build or one.machine != other.machine
    return (
        _told_apart(mine, theirs, workload_apart(mine, theirs, one.evidence, other.evidence, any_build=own))
        or _other_shared(first, second)
        or _other_settings(first, second)
    )


def _cpus(machine: Machine) -> int | None:
    found = machine.facts.get("cores_allowed")
    return found if isinstance(found, int) else None


def _as_many_threads(mine: Workload, theirs: Workload, one: int | None, other: int | None) -> Workload:
    """The second workload as a suite has it on the first machine, where only the number of CPUs tells them apart.

    A suite says what depends on it in the same words for all machines: one thread for each CPU, or four.

    Args:
        mine: the first workload.
        theirs: the second.
        one: how many CPUs the first machine has, where that is known.
        other: how many the second has.
    """
    if one is None or other is None or len(mine.command) != len(theirs.command):
        return theirs
    depending = {(str(times * one), str(times * other)) for times in _THREADS_PER_CPU}
    words = [
        word if (word, said) in depending else said for word, said in zip(mine.command, theirs.command, strict=True)
    ]
    return theirs.model_copy(update={"command": words})


def verb(experiment: Experiment) -> str:
    """What has measured."""
    return (experiment.command_line[1:2] or ["compare"])[0]


def _told_apart(one: Workload, other: Workload, found: str | None) -> str | None:
    """What is not the same of two workloads of one name; both commands, where these are not.

    Args:
        found: what :func:`freestone.analysis.comparable.workload_apart` says.
    """
    if found == _ANOTHER_COMMAND:
        return f"another command: {_command(other)}, not {_command(one)}"
    return found or _other_rules(one, other)


def _command(workload: Workload) -> str:
    said = " ".join(workload.command)
    return said if len(said) <= 60 else f"{said[:57]}..."


def _other_rules(one: Workload, other: Workload) -> str | None:
    """A setting of a workload that is not the same."""
    for name in Workload.model_fields:
        values = getattr(one, name), getattr(other, name)
        if name not in (*_JUDGED, *_OF_THE_PLACE) and values[0] != values[1]:
            return f"another {name}: {_value(values[1])}, not {_value(values[0])}"
    return None


def _value(value: Any) -> str:
    return "none" if value in (None, [], {}) else str(value)


def _other_shared(one: Experiment, other: Experiment) -> str | None:
    """What is not the same of a configuration that both have."""
    mine, theirs = ({each.name: each for each in side.configurations} for side in (one, other))
    shared = [name for name in mine if name in theirs]
    return next((f"{name}: {told}" for name in shared if (told := _other_setting(mine[name], theirs[name]))), None)


def _other_setting(one: Configuration, other: Configuration) -> str | None:
    if one.allocator.name != other.allocator.name:
        return f"another allocator: {other.allocator.name}, not {one.allocator.name}"
    for mine, theirs in ((one.environment, other.environment), (one.kernel, other.kernel)):
        for name in sorted(mine.keys() | theirs.keys()):
            if mine.get(name) != theirs.get(name):
                return f"other settings: {name} is {theirs.get(name, 'not set')}, not {mine.get(name, 'not set')}"
    return None if one.huge_pages_off == other.huge_pages_off else "huge pages are off on one side only"


def _other_settings(one: Experiment, other: Experiment) -> str | None:
    if one.timeout_s != other.timeout_s:
        return f"another timeout: {_value(other.timeout_s)}, not {_value(one.timeout_s)}"
    if one.environment is None or other.environment is None:
        return None
    if one.environment.kept != other.environment.kept:
        return "the lab's environment was kept on one side only"
    found = environments_differ(_read_by_programs(one, one.environment), _read_by_programs(other, other.environment))
    return None if found is None else f"another environment: {found}"


def _read_by_programs(experiment: Experiment, environment: Environment) -> Environment:
    """What is recorded with its value, without what every workload sets for itself; the rest is each machine's own."""
    set_anew = set.intersection(*(set(each.environment) for each in experiment.workloads))
    return Environment(told={name: value for name, value in environment.told.items() if name not in set_anew})


def names_apart(mine: Sequence[str], theirs: Sequence[str]) -> str:
    """What only one of two lists of names has: ``with`` what is more in the second, ``without`` what it lacks."""
    more = [name for name in theirs if name not in mine]
    less = [name for name in mine if name not in theirs]
    told = [f"{word} {_first(names)}" for word, names in (("with", more), ("without", less)) if names]
    return ", ".join(told)


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
