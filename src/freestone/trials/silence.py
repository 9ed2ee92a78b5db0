"""Which processes ended without last words. Pure."""

from __future__ import annotations

import math
from collections import Counter

from freestone.trials.census import Ending
from freestone.trials.evidence import Evidence
from freestone.trials.witness import Testimony


def silent(evidence: Evidence) -> dict[str, int]:
    """Program -> how many of its processes ended and did not say so.

    A signal ended them, or a plain system call. Without a census only those can be missed that said they began.
    """
    spoken: dict[int, list[float]] = {}
    for testimony in evidence.testimonies:
        if testimony.departure is not None:
            spoken.setdefault(testimony.departure.pid, []).append(testimony.departure.at_s)
    if evidence.endings is not None:
        births: dict[int, list[float]] = {}
        for one in evidence.endings:
            births.setdefault(one.pid, []).append(one.born_s)

        def spoke(one: Ending) -> bool:
            # Not: before its end. The kernel tells the end of the first thread, which others may outlive.
            until_s = min((at_s for at_s in births[one.pid] if at_s > one.born_s), default=math.inf)
            return any(one.born_s <= at_s < until_s for at_s in spoken.get(one.pid, ()))

        return dict(Counter(one.program for one in evidence.endings if not spoke(one)))
    last: dict[int, Testimony] = {}
    for testimony in evidence.testimonies:
        if testimony.fork_of is None and testimony.at_s >= (last[testimony.pid].at_s if testimony.pid in last else 0.0):
            last[testimony.pid] = testimony
    return dict(Counter(one.exe for one in last.values() if one.departure is None))
