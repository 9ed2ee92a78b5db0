"""What changed between two results, or between two configurations of one: records in, difference out. Pure functions.

In one experiment the two sides are paired within rounds. Two experiments were made at different times, and a machine is
not the same machine an hour later: there, a configuration's time is held against *controls*, configurations that are
the same on both sides (file, build-id, settings), within the rounds of each side, so that what the machine does to all
of them drops out. Without controls the times say nothing, and no verdict is given. Memory and faults do not drift and
are compared as they are.

Many workloads are asked at once, so the verdicts rest on intervals so wide that, if nothing changed at all, nineteen
differences in twenty accuse nothing (:mod:`freestone.analysis.family`: half of the twentieth for the means, half for
the single workloads).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from freestone.analysis import arms, family, same_work, statistics
from freestone.analysis.rounds import Arm
from freestone.analysis.same_environment import environments_differ
from freestone.analysis.score import FAULTS, PEAK_RSS, TIME, metric_of
from freestone.analysis.statistics import CONFIDENCE, Estimate, Interval, geometric_mean
from freestone.records.schema import (
    PROGRAM,
    Apart,
    Change,
    ChangeVerdict,
    Configuration,
    Difference,
    Experiment,
    Machine,
    Service,
    TrialRecord,
    Workload,
)

ASPECTS = (TIME, PEAK_RSS, FAULTS)

Rounds = Mapping[int, float]


class NotComparable(ValueError):
    """The two sides have nothing that may be compared; the message is one line."""


@dataclass(frozen=True)
class Side:
    """One of two results."""

    experiment: Experiment
    records: Sequence[TrialRecord]


def between(before: Side, after: Side, subjects: Sequence[str] = ()) -> Difference:
    """What changed from one experiment to a later one on the same machine.

    Args:
        subjects: configurations to look at, in both under these names. None: those that are not the same on both sides;
            where all are the same, all but the baseline.

    Raises:
        NotComparable: other machines, other environments, nothing in common, or a subject that is not in both.
    """
    _require_same_machine(before.experiment.machine, after.experiment.machine)
    differs = environments_differ(before.experiment.environment, after.experiment.environment)
    if differs:
        raise NotComparable(f"results of different environments are never compared: {differs}")
    apart: list[Apart] = []
    workloads = _common_workloads(before, after, apart)
    old = {each.name: each for each in before.experiment.configurations}
    new = {each.name: each for each in after.experiment.configurations}
    apart += [
        Apart(what=f"configuration {name}", reason=f"only in {side}")
        for names, others, side in ((old, new, before.experiment.id), (new, old, after.experiment.id))
        for name in names
        if name not in others
    ]
    # What is not even tried any more is within no limit either.
    had = {name for arm in _Figures(before).measured for name in (f"workload {arm[0]}", f"configuration {arm[1]}")}
    gone = [each for each in apart if each.reason == f"only in {before.experiment.id}" and each.what in had]
    shared = [name for name in old if name in new]
    if not shared:
        raise NotComparable("the two results have no configuration in common; --before and --after name one of each")
    changed = {
        name: _change_of(old[name], new[name]) or _other_library(old[name], new[name], before, after) for name in shared
    }
    chosen = list(subjects) or [name for name in shared if changed[name]] or _all_but(shared, after.experiment.baseline)
    for name in chosen:
        if name not in shared:
            raise NotComparable(f"'{name}' is not in both results; there are {', '.join(shared)}")
    controls = [name for name in shared if not changed[name] and name not in chosen]
    sides = (_Figures(before), _Figures(after))
    unrelated = None if controls else "no configuration is the same in both results: what the machine did is not known"
    found = [
        _apart(sides, workload, name, aspect, controls)
        for workload in workloads
        for name in chosen
        for aspect in ASPECTS
    ]
    drift = [_apart(sides, workload, name, TIME, []) for workload in workloads if workload.counted for name in controls]
    return Difference(
        before=before.experiment.id,
        after=after.experiment.id,
        subjects={name: changed[name] or "the same on both sides" for name in chosen},
        controls=controls,
        confidence=CONFIDENCE,
        changes=_told([each for each in found if each is not None], unrelated is not None),
        drift=_means([each for each in drift if each is not None], CONFIDENCE, frozenset()),
        apart=[*apart, *_unmeasured(sides, workloads, chosen)],
        lost=[*gone, *_lost(sides, workloads, [(name, name) for name in chosen])],
        unrelated=unrelated,
    )


def within(side: Side, before: str, after: str) -> Difference:
    """What one configuration of an experiment differs in from another, paired within rounds.

    Raises:
        NotComparable: one of them is not in the experiment, or both are the same one.
    """
    names = [each.name for each in side.experiment.configurations]
    for name in (before, after):
        if name not in names:
            raise NotComparable(f"'{name}' is not measured in {side.experiment.id}; there are {', '.join(names)}")
    if before == after:
        raise NotComparable(f"'{before}' is the same before and after")
    figures = _Figures(side)
    apart: list[Apart] = []
    workloads = []
    for workload in side.experiment.workloads:
        if not workload.output_may_differ and figures.said_apart(workload.name, before, figures, after):
            apart.append(Apart(what=f"workload {workload.name}", reason=f"{after} has other output than {before}"))
        else:
            workloads.append(workload)
    old, new = (next(each for each in side.experiment.configurations if each.name == name) for name in (before, after))
    found = [_paired(figures, workload, before, after, aspect) for workload in workloads for aspect in ASPECTS]
    return Difference(
        before=side.experiment.id,
        after=side.experiment.id,
        held_against=before,
        subjects={after: _told_from(old, new)},
        controls=[],
        confidence=CONFIDENCE,
        changes=_told([each for each in found if each is not None], timeless=False),
        apart=[*apart, *_unmeasured((figures, figures), side.experiment.workloads, [before, after])],
        lost=[*apart, *_lost((figures, figures), side.experiment.workloads, [(before, after)])],
    )


# --- what may be compared ---------------------------------------------------------------------------------------------


def _require_same_machine(one: Machine, other: Machine) -> None:
    if one.id == other.id:
        return
    facts = sorted(one.facts.keys() | other.facts.keys())
    differ = [
        f"{name} {one.facts.get(name)} and {other.facts.get(name)}"
        for name in facts
        if one.facts.get(name) != other.facts.get(name)
    ]
    raise NotComparable(f"results of different machines are never compared: {', '.join(differ[:3]) or 'they say so'}")


def _common_workloads(before: Side, after: Side, apart: list[Apart]) -> list[Workload]:
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
    sides = (_Figures(before), _Figures(after))
    names = [each.name for each in before.experiment.configurations]
    apart = [name for name in names if sides[0].said_apart(workload, name, sides[1], name)]
    return f"another output, as under {apart[0]}: the program did other work" if apart else None


def _other_library(one: Configuration, other: Configuration, before: Side, after: Side) -> str:
    """Whether a library without a build-id has another content, in words; nothing where it has not, or nobody knows."""
    contents = [
        {
            content
            for record in side.records
            if record.configuration == each.name and (content := record.files.get(each.allocator.file or ""))
        }
        for each, side in ((one, before), (other, after))
    ]
    return "another content of its file" if all(contents) and not contents[0] & contents[1] else ""


def _change_of(one: Configuration, other: Configuration) -> str:
    """What is different about a configuration, in words; nothing when it is the same."""
    told = []
    if one.allocator.build_id != other.allocator.build_id or one.allocator.build_id is None:
        builds = [(each.allocator.build_id or "no build-id")[:12] for each in (one, other)]
        versions = [each.allocator.version or "" for each in (one, other)]
        names = [f"{version} ({build})".strip() for version, build in zip(versions, builds, strict=True)]
        if (
            one.allocator.build_id is not None
            or one.allocator.file != other.allocator.file
            or versions[0] != versions[1]
        ):
            told.append(f"{names[0]} -> {names[1]}")
    for name in sorted(one.environment.keys() | other.environment.keys()):
        values = [each.environment.get(name) for each in (one, other)]
        if values[0] != values[1]:
            told.append(f"{name}: {values[0] or 'unset'} -> {values[1] or 'unset'}")
    return ", ".join(told)


def _told_from(one: Configuration, other: Configuration) -> str:
    """Two configurations by their names, each with what the other has not: ``old (build 12ab) -> new (build 34cd)``."""
    sides = [
        f"{each.name} ({', '.join(parts)})" if (parts := _own(each, beside)) else each.name
        for each, beside in ((one, other), (other, one))
    ]
    alike = "" if any(_own(*pair) for pair in ((one, other), (other, one))) else ": the same build and settings"
    return f"{sides[0]} -> {sides[1]}{alike}"


def _own(one: Configuration, other: Configuration) -> list[str]:
    """What tells a configuration from another, besides its name: what is the same on both sides tells nothing."""
    mine, theirs = one.allocator, other.allocator
    told = []
    if (mine.title, mine.version) != (theirs.title, theirs.version) and mine.version is not None:
        told.append(f"{mine.title} {mine.version}" if mine.title != one.name else mine.version)
    if mine.build_id != theirs.build_id:
        short = None if mine.build_id is None else mine.build_id[:12]
        same = theirs.build_id is not None and short == theirs.build_id[:12]
        told.append("no build-id" if short is None else f"build {mine.build_id if same else short}")
    elif mine.build_id is None and mine.file != theirs.file:
        told.append(mine.file or "no file")
    for name in sorted(one.environment.keys() | other.environment.keys()):
        value = one.environment.get(name)
        if value != other.environment.get(name):
            told.append(f"{name} unset" if value is None else f"{name}={value}")
    return told


def _all_but(names: Sequence[str], baseline: str) -> list[str]:
    return [name for name in names if name != baseline] or list(names)


def _unmeasured(sides: tuple[_Figures, _Figures], workloads: Iterable[Workload], names: Sequence[str]) -> list[Apart]:
    found: list[Apart] = []
    for workload in workloads:
        for name in names:
            reasons = dict.fromkeys(
                reason for side in sides if (reason := side.absent.get((workload.name, name))) is not None
            )
            found += [Apart(what=f"{name} on {workload.name}", reason=reason) for reason in reasons]
    return found


def _lost(
    sides: tuple[_Figures, _Figures], workloads: Iterable[Workload], pairs: Sequence[tuple[str, str]]
) -> list[Apart]:
    """What had a result and has none any more, whether it failed or was not measured."""
    found = []
    for workload in workloads:
        for before, after in pairs:
            reason = sides[1].absent.get((workload.name, after))
            if reason is not None and sides[0].has(workload.name, before):
                found.append(Apart(what=f"{after} on {workload.name}", reason=reason))
    return found


# --- how much it changed ----------------------------------------------------------------------------------------------


class _Figures:
    """The rounds of one side, by arm and metric."""

    def __init__(self, side: Side) -> None:
        self._by_arm: dict[Arm, dict[str, dict[int, float]]] = {}
        self.absent: dict[Arm, str] = {}
        self._said: dict[Arm, str | None] = {}
        by_arm = arms.by_arm(arms.counted(side.experiment, side.records))
        for workload in side.experiment.workloads:
            for configuration in side.experiment.configurations:
                arm = (workload.name, configuration.name)
                mine = by_arm.get(arm, [])
                status, reason = arms.verdict(mine)
                if status == "ok":
                    self._by_arm[arm] = arms.by_round(mine)
                    self._said[arm] = same_work.said(arms.good(mine))
                else:
                    self.absent[arm] = "not measured" if status == "unmeasured" else reason or status

    @property
    def measured(self) -> list[Arm]:
        """The arms that have a result."""
        return list(self._by_arm)

    def has(self, workload: str, configuration: str) -> bool:
        """Whether there is a result."""
        return (workload, configuration) in self._by_arm

    def said_apart(self, workload: str, one: str, figures: _Figures, other: str) -> bool:
        """Whether the output of one configuration, and that of another, agree with themselves and not with each other.

        Args:
            figures: those that hold the other one.
        """
        said = (self._said.get((workload, one)), figures._said.get((workload, other)))
        return None not in said and said[0] != said[1]

    def rounds(self, workload: str, configuration: str, metric: str) -> Rounds:
        """Round -> value; nothing where a value has no logarithm."""
        found = self._by_arm.get((workload, configuration), {}).get(metric, {})
        return found if all(0 < value < math.inf for value in found.values()) else {}


@dataclass(frozen=True)
class _Found:
    """A change before it is known how many others stand beside it."""

    workload: Workload
    configuration: str
    aspect: str
    before: float
    after: float
    change: Estimate


def _paired(figures: _Figures, workload: Workload, before: str, after: str, aspect: str) -> _Found | None:
    metric = metric_of(aspect, workload)
    one, other = (figures.rounds(workload.name, name, metric) for name in (before, after))
    common = sorted(one.keys() & other.keys())
    if not common:
        return None
    return _Found(
        workload,
        after,
        aspect,
        geometric_mean([one[number] for number in common]),
        geometric_mean([other[number] for number in common]),
        statistics.estimate([math.log(other[number]) - math.log(one[number]) for number in common]),
    )


def _apart(
    sides: tuple[_Figures, _Figures], workload: Workload, name: str, aspect: str, controls: Sequence[str]
) -> _Found | None:
    metric = metric_of(aspect, workload)
    held = [side.rounds(workload.name, name, metric) for side in sides]
    if not all(held):
        return None
    if aspect == TIME:
        # A control that one side lacks would count on the other alone.
        there = [each for each in controls if all(side.rounds(workload.name, each, metric) for side in sides)]
        if controls and not there:
            return None
        logs = [
            _against([side.rounds(workload.name, each, metric) for each in there], own)
            for side, own in zip(sides, held, strict=True)
        ]
    else:
        logs = [[math.log(value) for value in own.values()] for own in held]
    if not all(logs):
        return None
    one, other = (statistics.estimate(each) for each in logs)
    before, after = (geometric_mean(list(own.values())) for own in held)
    return _Found(workload, name, aspect, before, after, statistics.weighted([(1.0, other), (-1.0, one)]))


def _against(controls: Sequence[Rounds], own: Rounds) -> list[float]:
    """The logarithm of a configuration's time, round by round, less the mean of the controls'."""
    common = set(own).intersection(*(set(each) for each in controls))
    return [
        math.log(own[number])
        - (math.fsum(math.log(each[number]) for each in controls) / len(controls) if controls else 0.0)
        for number in sorted(common)
    ]


def _told(found: Sequence[_Found], timeless: bool) -> list[Change]:
    """The changes and their means, each with the interval that holds together with all others."""
    groups = {(each.configuration, each.aspect) for each in found if each.workload.counted}
    for_rows = family.confidence(family.ROWS, len(found))
    silent = frozenset({TIME} if timeless else ())
    rows = [_change(each.workload.name, each, each.change, for_rows, each.aspect in silent) for each in found]
    return [*_means(found, family.confidence(family.MEANS, len(groups)), silent), *rows]


def _means(found: Sequence[_Found], sure: float, silent: frozenset[str]) -> list[Change]:
    """Over all counted workloads, by configuration and aspect."""
    groups: dict[tuple[str, str], list[_Found]] = {}
    for each in found:
        if each.workload.counted:
            groups.setdefault((each.configuration, each.aspect), []).append(each)
    return [
        _change(
            None,
            group[0],
            statistics.weighted([(1 / len(group), each.change) for each in group]),
            sure,
            aspect in silent,
        )
        for (_, aspect), group in groups.items()
    ]


def _change(workload: str | None, of: _Found, change: Estimate, sure: float, silent: bool) -> Change:
    held = statistics.interval(change, sure)
    return Change(
        workload=workload,
        configuration=of.configuration,
        aspect=of.aspect,
        before=of.before if workload is not None else None,
        after=of.after if workload is not None else None,
        ratio=held.value,
        low=held.low,
        high=held.high,
        rounds=change.count,
        verdict="unknown" if silent else _verdict(held),
    )


def _verdict(sure: Interval) -> ChangeVerdict:
    if not sure.known:
        return "unknown"
    return "more" if sure.low > 1 else "less" if sure.high < 1 else "same"
