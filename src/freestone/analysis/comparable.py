"""What of two results may be compared: one machine, workloads that do the same work with the same program. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from freestone.analysis import arms, machines, same_work
from freestone.analysis.sides import Side
from freestone.records.schema import PROGRAM, Apart, Machine, Service, Workload


class NotComparable(ValueError):
    """The two sides have nothing that may be compared; the message is one line."""


_Contents = Mapping[str, frozenset[str]]
"""By path, what a file held in the runs that left it as it was: one content, unless somebody changed it in between."""


@dataclass(frozen=True)
class Evidence:
    """What the runs of one workload tell of the work that they did; nothing where all of them failed."""

    contents: _Contents
    """Of the files that the command names."""
    builds: frozenset[str]
    """Of the program."""
    said: Mapping[str, str]
    """Configuration -> what the program says under it each time, as a digest."""


def evidence(workload: str, side: Side) -> Evidence:
    """What the runs of a workload tell."""
    mine = [record for record in side.records if record.workload == workload]
    good = arms.good(mine)
    contents: dict[str, set[str]] = {}
    for record in good:
        for path, content in record.files.items():
            contents.setdefault(path, set()).add(content)
    programs = [record.proof.processes[0].exe_build_id for record in good if record.proof.processes]
    by_arm = arms.by_arm(arms.counted(side.experiment, mine))
    said: dict[str, str] = {}
    for configuration in side.experiment.configurations:
        of_arm = by_arm.get((workload, configuration.name), [])
        digest = same_work.said(arms.good(of_arm)) if arms.verdict(of_arm)[0] == "ok" else None
        if digest is not None:
            said[configuration.name] = digest
    return Evidence(
        {path: frozenset(held) for path, held in contents.items()},
        frozenset(build for build in programs if build),
        said,
    )


def require_same_machine(one: Machine, other: Machine) -> None:
    differ = machines_differ(one, other)
    if differ is not None:
        raise NotComparable(f"results of different machines are never compared: {differ}")


def machines_differ(one: Machine, other: Machine) -> str | None:
    """Which facts are not the same on two machines, the first few by name with both values; None for one machine."""
    if machines.alike(one, other):
        return None
    facts = sorted((one.facts.keys() | other.facts.keys()) - machines.BESIDE_THE_HOST)
    differ = [
        f"{name} {one.facts.get(name)} and {other.facts.get(name)}"
        for name in facts
        if one.facts.get(name) != other.facts.get(name)
    ]
    return ", ".join(differ[:3]) or "they say so"


def common_workloads(before: Side, after: Side, apart: list[Apart]) -> list[Workload]:
    old = {each.name: each for each in before.experiment.workloads}
    new = {each.name: each for each in after.experiment.workloads}
    common: list[Workload] = []
    for name in dict.fromkeys([*old, *new]):
        if name not in new or name not in old:
            side = before if name in old else after
            apart.append(Apart(what=f"workload {name}", reason=f"only in {side.experiment.id}"))
            continue
        reason = workload_apart(old[name], new[name], evidence(name, before), evidence(name, after))
        if reason:
            apart.append(Apart(what=f"workload {name}", reason=reason))
        else:
            common.append(new[name])
    if not common:
        raise NotComparable(f"no workload is the same in both results: {_first_reasons(apart)}")
    return common


def workload_apart(
    one: Workload, other: Workload, before: Evidence, after: Evidence, *, any_build: bool = False
) -> str | None:
    """How a workload of two results is not the same work; None where it is.

    Args:
        one: the workload as the first has it.
        other: as the second has it, by the same name.
        before: what the first's runs tell.
        after: what the second's tell.
        any_build: whether its program may be another build, as on machines that each have their own.
    """
    return (
        _other_work(one, other, (before.contents, after.contents))
        or (None if any_build else _other_program(before, after))
        or _other_files(before, after)
        # What a server writes is its log; what it did is told by whoever drove it.
        or (None if other.output_may_differ or other.service is not None else _other_output(before, after))
    )


def _first_reasons(apart: Sequence[Apart]) -> str:
    return "; ".join(f"{each.what}: {each.reason}" for each in apart[:2]) + ("; ..." if len(apart) > 2 else "")


def _other_work(one: Workload, other: Workload, named: tuple[_Contents, _Contents]) -> str | None:
    command = _other_command(one.command, other.command, named)
    if command is not None:
        return command
    if one.environment != other.environment:
        return "another environment"
    if one.reads != other.reads:
        return "its time was read differently"
    if one.service != other.service:
        return _other_service(one.service, other.service)
    return _other_surroundings(one, other, named)


def _other_service(one: Service | None, other: Service | None) -> str:
    """How two servers were driven differently; as different as two commands."""
    if one is None or other is None:
        return "a server on one side only"
    for name in ("load", "ready"):
        if getattr(one, name) != getattr(other, name):
            return f"another --{name}"
    return "other times for it to be ready or gone"


def _other_surroundings(one: Workload, other: Workload, named: tuple[_Contents, _Contents]) -> str | None:
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
    return None if _other_word(one.input.file, other.input.file, named) is None else "another input"


def _other_command(one: Sequence[str], other: Sequence[str], named: tuple[_Contents, _Contents]) -> str | None:
    """How a command is another one. Where the program lies is of no matter: what it is, its build and content tell."""
    if len(one) != len(other) or _name(one[0]) != _name(other[0]):
        return "another command"
    words = zip(one[1:], other[1:], strict=True)
    return next((why for each in words if (why := _other_word(*each, named)) is not None), None)


def _other_word(one: str, other: str, named: tuple[_Contents, _Contents]) -> str | None:
    """How a word means something else. Another checkout is no other work, where it is known to hold the same.

    Of what the runs write to nothing is known: then the path has to be the same.
    """
    if one == other:
        return None
    if _name(one) != _name(other):
        return "another command"
    held, others = _held(one, named[0]), _held(other, named[1])
    if not held or not others:
        return f"another command: {one} and {other} are not known to hold the same"
    return None if held & others else f"another content of {_name(one)}"


def _name(word: str) -> str:
    return PurePath(word).name if word.startswith("/") else word


def _held(word: str, contents: _Contents) -> frozenset[str]:
    """What the file held that a word names; nothing where that was not recorded."""
    path = str(PurePath(word))
    if path.startswith("/"):
        return contents.get(path, frozenset())
    return frozenset(each for name, held in contents.items() if name.endswith(f"/{path}") for each in held)


def _other_files(before: Evidence, after: Evidence) -> str | None:
    """Whether a script or an input that the command names has another content; a program's build is told by its id."""
    named: list[dict[str, set[str]]] = []
    for side in (before, after):
        contents: dict[str, set[str]] = {}
        for path, held in side.contents.items():
            contents.setdefault(PurePath(path).name, set()).update(held)
        named.append(contents)
    for name, held_before in named[0].items():
        others = named[1].get(name, held_before)
        if not held_before & others and not any(content.startswith(PROGRAM) for content in held_before | others):
            return f"another content of {name}"
    return None


def _other_program(before: Evidence, after: Evidence) -> str | None:
    known = before.builds and after.builds
    return "another build of the program" if known and not before.builds & after.builds else None


def _other_output(before: Evidence, after: Evidence) -> str | None:
    """Whether the program says something else after: then it did other work, as a script does that was changed."""
    apart = next((name for name, said in before.said.items() if after.said.get(name, said) != said), None)
    return None if apart is None else f"another output, as under {apart}: the program did other work"
