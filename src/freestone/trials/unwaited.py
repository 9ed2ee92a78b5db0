"""What processes used whose ends nobody heard: their parents ignore SIGCHLD, so the kernel adds them to nobody. Pure.

Such a parent says so with its last words, or a child of it does, which inherits that and then looks; and each child
says what it has used. What is known so is added. A child that a signal has ended says nothing: then the sum is not
known.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from freestone.trials.census import Ending, endings
from freestone.trials.witness import Departure, Testimony, Usage

_LITTLE_S = 0.01
"""Processor time below which a parent has waited for nobody."""


@dataclass(frozen=True, slots=True)
class Unwaited:
    """Processes that nobody waited for. ``usage`` is theirs by their own words, and no figure where not ``known``."""

    processes: int
    usage: Usage
    known: bool

    @property
    def note(self) -> str:
        """What is to be said of them, in one line."""
        many = "1 process" if self.processes == 1 else f"{self.processes} processes"
        first = f"the program ignores SIGCHLD, so the kernel adds {many} to nobody"
        if self.known:
            return f"{first}: what they used is by their own last words"
        return f"{first}, and not all of them said what they used: CPU time, faults and peak RSS are not known"


def unwaited(
    testimonies: Sequence[Testimony],
    events: Iterable[Sequence[Any]] = (),
    ignoring: Collection[int] = (),
    since_s: float = 0.0,
    until_s: float = math.inf,
) -> Unwaited | None:
    """The processes of a tree that nobody waited for and that ended in a stretch of time; None where there are none.

    Args:
        testimonies: the witness's.
        events: the kernel's census, where there is one: it knows of those who said nothing.
        ignoring: processes that were seen to ignore SIGCHLD.
        since_s: on the monotonic clock.
        until_s: likewise.
    """
    said = {each.departure.pid: each.departure for each in testimonies if each.departure is not None}
    droppers = {each.pid for each in said.values() if each.drops} | {
        each.parent for each in said.values() if each.dropped
    }
    droppers |= set(ignoring)
    lost = [each for each in said.values() if each.parent in droppers and since_s <= each.at_s <= until_s]
    silent = _silent(testimonies, endings(events), droppers, said, since_s, until_s)
    if not lost and not silent:
        return None
    usage = sum((_whole(each) for each in lost), Usage())
    # Those who heard of some children, and later of none: what they waited for is in the kernel's sum already.
    heard = [each.waited for pid in droppers if (each := said.get(pid)) is not None and each.waited is not None]
    heard_s = math.fsum(each.cpu_s for each in heard)
    mixed = heard_s > _LITTLE_S
    return Unwaited(len(lost) + len(silent), usage, not silent and not mixed and all(each.spent for each in lost))


def _whole(departure: Departure) -> Usage:
    """Of a process and all that it has waited for."""
    return (departure.spent or Usage()) + (departure.waited or Usage())


def _silent(
    testimonies: Sequence[Testimony],
    endings: list[Ending],
    droppers: set[int],
    said: dict[int, Departure],
    since_s: float,
    until_s: float,
) -> set[int]:
    """Children of such parents that have ended without a word."""
    if not endings:
        begun = {each.pid for each in testimonies if each.fork_of is None and each.parent in droppers}
        return begun - set(said)
    gone_s = {each.pid: each.ended_s for each in endings}
    return {
        each.pid
        for each in endings
        # Who outlives his parent falls to the launcher, which waits for all.
        if each.parent in droppers
        and each.ended_s <= gone_s.get(each.parent, math.inf)
        and since_s <= each.ended_s <= until_s
        and each.pid not in said
    }
