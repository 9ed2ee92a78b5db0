"""What of two results may be compared: one machine, workloads that do the same work with the same program. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from freestone.analysis import arms
from freestone.analysis.sides import Figures, Side
from freestone.records.schema import PROGRAM, Apart, Machine, Service, Workload


class NotComparable(ValueError):
    """The two sides have nothing that may be compared; the message is one line."""


def require_same_machine(one: Machine, other: Machine) -> None:
    if one.id == other.id:
        return
    facts = sorted(one.facts.keys() | other.facts.keys())
    differ = [
        f"{name} {one.facts.get(name)} and {other.facts.get(name)}"
        for name in facts
        if one.facts.get(name) != other.facts.get(name)
    ]
    raise NotComparable(f"results of different machines are never compared: {', '.join(differ[:3]) or 'they say so'}")


def common_workloads(before: Side, after: Side, apart: list[Apart]) -> list[Workload]:
    old = {each.name: each for each in before.experiment.workloads}
    new = {each.name: each for each in after.experiment.workloads}
    common: list[Workload] = []
    for name in dict.fromkeys([*old, *new]):
        if name not in new or name not in old:
            side = before if name in old else after
            apart.append(Apart(what=f"workload {name}", reason=f"only in {side.experiment.id}"))
            continue
        reason = (
            _other_work(old[name], new[name])
            or _other_program(name, before, after)
            or _other_files(name, before, after)
            or (None if new[name].output_may_differ else _other_output(name, before, after))
        )
        if reason:
            apart.append(Apart(what=f"workload {name}", reason=reason))
        else:
            common.append(new[name])
    if not common:
        raise NotComparable(f"no workload is the same in both results: {_first_reasons(apart)}")
    return common


def _first_reasons(apart: Sequence[Apart]) -> str:
    return "; ".join(f"{each.what}: {each.reason}" for each in apart[:2]) + ("; ..." if len(apart) > 2 else "")


def _other_work(one: Workload, other: Workload) -> str | None:
    if _told_apart(one.command) != _told_apart(other.command):
        return "another command"
    if one.environment != other.environment:
        return "another environment"
    if one.reads != other.reads:
        return "its time was read differently"
    if one.service != other.service:
        return _other_service(one.service, other.service)
    return _other_surroundings(one, other)


def _other_service(one: Service | None, other: Service | None) -> str:
    """How two servers were driven differently; as different as two commands."""
    if one is None or other is None:
        return "a server on one side only"
    for name in ("load", "ready"):
        if getattr(one, name) != getattr(other, name):
            return f"another --{name}"
    return "other times for it to be ready or gone"


def _other_surroundings(one: Workload, other: Workload) -> str | None:
    """What stands around the runs and is not the same: a program that finds other files does other work."""
    for name in ("setup", "prepare", "conclude", "cleanup"):
        if getattr(one.stages, name) != getattr(other.stages, name):
            return f"another {name}"
    if one.warmup != other.warmup:
        return f"{one.warmup} and {other.warmup} warm-up runs"
    if one.input is None or other.input is None:
        return None if one.input == other.input else "an input on one side only"
    # Its content decides; where that is not known, its name has to.
    if None not in (one.input.sha256, other.input.sha256):
        return None if one.input.sha256 == other.input.sha256 else "another input"
    return None if _told_apart([one.input.file]) == _told_apart([other.input.file]) else "another input"


def _told_apart(command: Sequence[str]) -> list[str]:
    """A command without the folders of its files: another checkout is no other work."""
    return [PurePath(word).name if word.startswith("/") else word for word in command]


def _other_files(workload: str, before: Side, after: Side) -> str | None:
    """Whether a script or an input that the command names has another content; a program's build is told by its id."""
    named: list[dict[str, set[str]]] = []
    for side in (before, after):
        contents: dict[str, set[str]] = {}
        for record in arms.good(side.records):
            for path, content in record.files.items() if record.workload == workload else ():
                contents.setdefault(PurePath(path).name, set()).add(content)
        named.append(contents)
    for name, held in named[0].items():
        others = named[1].get(name, held)
        if not held & others and not any(content.startswith(PROGRAM) for content in held | others):
            return f"another content of {name}"
    return None


def _other_program(workload: str, before: Side, after: Side) -> str | None:
    builds = [
        {
            record.proof.processes[0].exe_build_id
            for record in arms.good(side.records)
            if record.workload == workload and record.proof.processes and record.proof.processes[0].exe_build_id
        }
        for side in (before, after)
    ]
    return "another build of the program" if all(builds) and not builds[0] & builds[1] else None


def _other_output(workload: str, before: Side, after: Side) -> str | None:
    """Whether the program says something else after: then it did other work, as a script does that was changed."""
    sides = (Figures(before), Figures(after))
    names = [each.name for each in before.experiment.configurations]
    apart = [name for name in names if sides[0].said_apart(workload, name, sides[1], name)]
    return f"another output, as under {apart[0]}: the program did other work" if apart else None
