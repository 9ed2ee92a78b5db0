"""What a server used while it was driven, and which of its figures are known well enough to be told. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

from freestone.records import notes
from freestone.trials.load_figures import LoadFigures
from freestone.trials.process import SHOWN_ROUNDED_S, TICK_S
from freestone.trials.tree import TreeReading
from freestone.trials.unwaited import Unwaited
from freestone.trials.witness import Usage

LARGEST_ERROR: Final = 0.01
"""Of the CPU time that a server used under load: where it may be wrong by more, it is not told."""

_TOO_COARSE: Final = (
    f"the kernel tells what ended processes used in steps of {1000 * TICK_S:g} ms, and all steps together may be more "
    "than 1 % of what the server used under load; a longer load brings it back"
)


@dataclass(frozen=True)
class UnderLoad:
    """What the server's tree used from the load's begin to its end, as the kernel tells it, and held then."""

    since_s: float
    until_s: float
    cpu_s: float
    minor_faults: int
    rss_kib: int
    cpu_error_s: float = 0.0
    """By how much ``cpu_s`` may be too small or too large."""

    @classmethod
    def between(cls, since_s: float, before: TreeReading, until_s: float, after: TreeReading) -> Self:
        """The difference of two readings. Each may be too small, so their difference may be that or too large.

        What the sum of a process's ended children lacks goes out where none has been added in between.
        """
        the_same_s = SHOWN_ROUNDED_S * len(before.rounded & after.rounded)
        return cls(
            since_s,
            until_s,
            after.cpu_s - before.cpu_s,
            after.minor_faults - before.minor_faults,
            after.rss_kib,
            max(0.0, max(before.cpu_lacks_s, after.cpu_lacks_s) - the_same_s),
        )

    def cpu_is_sure(self, more_s: float) -> bool:
        """Whether what was used, and ``more_s`` beside it, is known to :data:`LARGEST_ERROR`."""
        return self.cpu_error_s <= LARGEST_ERROR * (self.cpu_s + more_s) > 0


def figures(
    told: LoadFigures | None, used: UnderLoad | None, unwaited: Callable[[float, float], Unwaited | None]
) -> tuple[dict[str, float] | None, list[str]]:
    """What is recorded: the load's figures beside what the server's tree used while it was driven; None without a load.
    And what is to be said of one that is left out.

    Without ``cpu_seconds`` where it may be wrong by more than 1 %; and without it and ``faults_per_1000`` where it is
    not known what children used that nobody waited for, of which they that ask for them tell.

    Args:
        told: by the load.
        used: by the server.
        unwaited: those children, of a stretch of time. One that began before and ended in it was counted up to then
            at the begin, and is missing at the end: all that it used belongs into the difference.
    """
    if told is None or used is None:
        return None, []
    found = {"seconds": told.seconds_per_request, **told.latencies, "rss_kib_loaded": float(used.rss_kib)}
    lost = unwaited(used.since_s, used.until_s)
    if told.requests is None or (lost is not None and not lost.known):
        return found, []
    more = Usage() if lost is None else lost.usage
    found["faults_per_1000"] = 1000 * max(0, used.minor_faults + more.minor_faults) / told.requests
    if not used.cpu_is_sure(more.cpu_s):
        return found, [notes.left_out("CPU/request", _TOO_COARSE)]
    return {**found, "cpu_seconds": (used.cpu_s + more.cpu_s) / told.requests}, []
