"""What a results folder says of each call of the program: faults and system calls beyond those of its start. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from classic_case.rule import KIB, PerCall, Setting, per_call
from freestone.records.schema import CallCounts, Experiment, Summary

TODAY = "glibc"
THEN = "glibc:MALLOC_TOP_PAD_=0"
CURED = "glibc:MALLOC_MMAP_MAX_=0:MALLOC_TRIM_THRESHOLD_=-1"
OURS = "freestone"
SETTINGS = {
    TODAY: Setting(),
    THEN: Setting(top_pad=0, moves=False),
    CURED: Setting(maps=False, trim_threshold=1 << 64, moves=False),
}
"""What each configuration of glibc is to the rule."""

FAULTS_APART = 0.1
"""Per call: where the start of a program lies in its pages differs from run to run by chance."""


@dataclass(frozen=True, order=True)
class Case:
    """What was run: KiB of a matrix, matrices a call, and under what."""

    kib: int
    matrices: int
    configuration: str


class NotCounted(ValueError):
    """Something is missing in a folder; what, in one line."""


def start_of(experiment: Experiment) -> str:
    """The workload of no calls.

    Raises:
        NotCounted: there is none.
    """
    found = [each.name for each in experiment.workloads if each.command[-1] == "0"]
    if not found:
        raise NotCounted("the program's start alone was not run")
    return found[0]


def counted(experiment: Experiment, summary: Summary, calls: CallCounts) -> dict[Case, PerCall]:
    """Each case: median faults, and system calls in one run, less those of the start, by calls.

    Raises:
        NotCounted: a cell has no figure.
    """
    start = start_of(experiment)
    faults = {(each.workload, each.configuration): each.median.get("minor_faults") for each in summary.cells}
    kernel = {(each.workload, each.configuration): each for each in calls.counts}
    found = {}
    for workload in experiment.workloads:
        *_, kib, matrices, times = workload.command
        for configuration in experiment.configurations if int(times) else ():
            here, empty = (workload.name, configuration.name), (start, configuration.name)
            for key in (here, empty):
                if faults.get(key) is None or key not in kernel or kernel[key].status != "ok":
                    why = kernel[key].reason if key in kernel else "not counted"
                    raise NotCounted(f"{key[0]} under {key[1]}: {why}")
            found[Case(int(kib), int(matrices), configuration.name)] = PerCall(
                brk=_more(kernel[here].calls, kernel[empty].calls, "brk") / int(times),
                mmap=_more(kernel[here].calls, kernel[empty].calls, "mmap") / int(times),
                faults=((faults[here] or 0) - (faults[empty] or 0)) / int(times),
            )
    return found


def _more(here: Mapping[str, int], empty: Mapping[str, int], name: str) -> int:
    return here.get(name, 0) - empty.get(name, 0)


def against_the_rule(found: Mapping[Case, PerCall], calls: int) -> list[str]:
    """A line for each case of glibc that the rule does not foresee: each system call, and faults to 0.1 a call."""
    lines = []
    for case, counts in sorted(found.items()):
        if (setting := SETTINGS.get(case.configuration)) is None:
            continue
        rule = per_call(case.kib * KIB, case.matrices, setting, calls=calls)
        kernel = max(abs(counts.brk - rule.brk), abs(counts.mmap - rule.mmap))
        if kernel * calls >= 1 or abs(counts.faults - rule.faults) > FAULTS_APART:
            lines.append(f"{case.matrices} x {case.kib} KiB under {case.configuration}: {counts}, by the rule {rule}")
    return lines
