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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from freestone.analysis import arms, family, statistics
from freestone.analysis.comparable import NotComparable, common_workloads, require_same_machine
from freestone.analysis.configuration_change import change_of, other_library, told_from
from freestone.analysis.same_environment import environments_differ
from freestone.analysis.score import FAULTS, PEAK_RSS, TIME, metric_of
from freestone.analysis.sides import Figures, Rounds, Side
from freestone.analysis.statistics import CONFIDENCE, Estimate, Interval, geometric_mean
from freestone.records.schema import (
    Apart,
    Change,
    ChangeVerdict,
    Difference,
    Workload,
)

ASPECTS = (TIME, PEAK_RSS, FAULTS)


def between(before: Side, after: Side, subjects: Sequence[str] = ()) -> Difference:
    """What changed from one experiment to a later one on the same machine.

    Args:
        subjects: configurations to look at, in both under these names. None: those that are not the same on both sides;
            where all are the same, all but the baseline.

    Raises:
        NotComparable: other machines, other environments, nothing in common, or a subject that is not in both.
    """
    require_same_machine(before.experiment.machine, after.experiment.machine)
    differs = environments_differ(before.experiment.environment, after.experiment.environment)
    if differs:
        raise NotComparable(f"results of different environments are never compared: {differs}")
    apart: list[Apart] = []
    workloads = common_workloads(before, after, apart)
    old = {each.name: each for each in before.experiment.configurations}
    new = {each.name: each for each in after.experiment.configurations}
    apart += [
        Apart(what=f"configuration {name}", reason=f"only in {side}")
        for names, others, side in ((old, new, before.experiment.id), (new, old, after.experiment.id))
        for name in names
        if name not in others
    ]
    # What is not even tried any more is within no limit either.
    had = {name for arm in Figures(before).measured for name in (f"workload {arm[0]}", f"configuration {arm[1]}")}
    gone = [each for each in apart if each.reason == f"only in {before.experiment.id}" and each.what in had]
    shared = [name for name in old if name in new]
    if not shared:
        raise NotComparable("the two results have no configuration in common; --before and --after name one of each")
    changed = {
        name: change_of(old[name], new[name]) or other_library(old[name], new[name], before, after) for name in shared
    }
    chosen = list(subjects) or [name for name in shared if changed[name]] or _all_but(shared, after.experiment.baseline)
    for name in chosen:
        if name not in shared:
            raise NotComparable(f"'{name}' is not in both results; there are {', '.join(shared)}")
    controls = [name for name in shared if not changed[name] and name not in chosen]
    sides = (Figures(before), Figures(after))
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
    figures = Figures(side)
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
        subjects={after: told_from(old, new)},
        controls=[],
        confidence=CONFIDENCE,
        changes=_told([each for each in found if each is not None], timeless=False),
        apart=[*apart, *_unmeasured((figures, figures), side.experiment.workloads, [before, after])],
        lost=[*apart, *_lost((figures, figures), side.experiment.workloads, [(before, after)])],
    )


def _all_but(names: Sequence[str], baseline: str) -> list[str]:
    return [name for name in names if name != baseline] or list(names)


def _unmeasured(sides: tuple[Figures, Figures], workloads: Iterable[Workload], names: Sequence[str]) -> list[Apart]:
    found: list[Apart] = []
    for workload in workloads:
        for name in names:
            reasons = dict.fromkeys(
                reason for side in sides if (reason := side.absent.get((workload.name, name))) is not None
            )
            found += [Apart(what=f"{name} on {workload.name}", reason=reason) for reason in reasons]
    return found


def _lost(
    sides: tuple[Figures, Figures], workloads: Iterable[Workload], pairs: Sequence[tuple[str, str]]
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


@dataclass(frozen=True)
class _Found:
    """A change before it is known how many others stand beside it."""

    workload: Workload
    configuration: str
    aspect: str
    before: float
    after: float
    change: Estimate


def _paired(figures: Figures, workload: Workload, before: str, after: str, aspect: str) -> _Found | None:
    metric = metric_of(aspect, workload)
    one, other = (figures.rounds(workload.name, name, metric) for name in (before, after))
    common = one.keys() & other.keys()
    change = statistics.within_rounds(other, one, arms.step(metric))
    if change is None:
        return None
    return _Found(
        workload,
        after,
        aspect,
        geometric_mean([one[number] for number in common]),
        geometric_mean([other[number] for number in common]),
        change,
    )


def _apart(
    sides: tuple[Figures, Figures], workload: Workload, name: str, aspect: str, controls: Sequence[str]
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
    grain = statistics.grain(arms.step(metric), [value for own in held for value in own.values()])
    one, other = (statistics.estimate(each, grain / 2) for each in logs)  # the halves of both are added
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
