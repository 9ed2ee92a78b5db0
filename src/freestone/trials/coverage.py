"""Whether everything that ran was seen, by a census of this very run or by what a rehearsal has shown. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from freestone.trials.evidence import Cause, Evidence, Finding, Sequences
from freestone.trials.judged_image import JudgedImage


def sequences(judged: Sequence[JudgedImage]) -> Sequences:
    """What each process executed, one after the other.

    A number that is given to a second process makes one sequence of both, in a rehearsal and in a trial alike.
    """
    by_pid: dict[int, list[JudgedImage]] = {}
    for one in sorted(judged, key=lambda one: one.begin_s):
        by_pid.setdefault(one.pid, []).append(one)
    return Counter(tuple(one.exe for one in mine) for mine in by_pid.values())


def gap(
    evidence: Evidence, judged: Sequence[JudgedImage]
) -> tuple[Finding | None, Literal["perf", "rehearsal", "none"]]:
    """What the census as a whole lacks, and which kind of census the proof rests on."""
    rehearsed = evidence.rehearsed
    if evidence.images is not None and evidence.census_gap is None:
        if not evidence.images:
            return Finding(Cause.CENSUS, "incomplete census: it holds no process at all"), "perf"
        return None, "perf"
    if rehearsed is None:
        lack = evidence.census_gap or "no census was taken"
        return Finding(Cause.CENSUS, f"no complete census: {lack}, and there was no rehearsal"), "none"
    if rehearsed.finding is not None:
        if rehearsed.finding in [one.finding for one in judged]:
            return None, "rehearsal"  # seen again, and invalid already
        return Finding(rehearsed.finding.cause, f"{rehearsed.finding.text} (in the rehearsal)"), "rehearsal"
    return _other_course(rehearsed.sequences, sequences(judged)), "rehearsal"


def _other_course(rehearsed: Sequences, seen: Sequences) -> Finding | None:
    """What ran in the rehearsal and was not witnessed in the trial, or the other way round.

    Where as many processes were witnessed as were rehearsed, one that nobody witnessed cannot hide among the others.
    """
    apart = [each for each in {**rehearsed, **seen} if rehearsed.get(each, 0) != seen.get(each, 0)]
    if not apart:
        return None
    # What is missing says more than what is new: it may have run unseen.
    first = min(apart, key=lambda each: (rehearsed.get(each, 0) <= seen.get(each, 0), each))
    before, now = rehearsed.get(first, 0), seen.get(first, 0)
    name = " then ".join(first)
    if now == 0:
        return Finding(Cause.UNSEEN, f"unseen process: {name} ran in the rehearsal but was not witnessed here")
    if before == 0:
        return Finding(Cause.UNSEEN, f"unseen process: {name} did not run in the rehearsal")
    return Finding(
        Cause.UNSEEN,
        f"unseen process: of {name} {now} were witnessed here and {before} in the rehearsal; where a program does not "
        "start the same processes each time, a census inside the trial is needed (kernel.perf_event_paranoid at 2)",
    )
