"""Which remedy helped: what is kept, what is best for a goal, and what cannot be had together. Pure.

A remedy counts only where its interval excludes no change. A gain that cannot be told from nothing is none, and a loss
likewise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from freestone.analysis.pareto import Gain, Goal
from freestone.analysis.statistics import FEWEST_PAIRS
from freestone.doctor.remedies import Remedy
from freestone.records.schema import Ratio, Summary, Workload

LEAST_ROUNDS: Final = 6
"""For so many rounds there is time when remedies are chosen: rather fewer are tried. With :data:`FEWEST_PAIRS`, which
are enough for an interval, only what is large is told apart."""


@dataclass(frozen=True)
class Tried(Gain):
    """A remedy and what it did, against the untouched program."""

    remedy: Remedy | None = None
    """None for the program as it is."""

    @property
    def is_plain(self) -> bool:
        """Whether it is an allocator as it is, without a setting or a switch."""
        return self.remedy is not None and self.remedy.is_plain

    def is_unknown(self, goal: Goal) -> bool:
        """Whether there were too few rounds to tell if it is better for the goal."""
        wanted = {"time": (self.time,), "memory": (self.memory,)}.get(goal, (self.time, self.memory))
        return self.discarded is None and any(each is not None and each.pairs < FEWEST_PAIRS for each in wanted)


@dataclass(frozen=True)
class Verdict:
    """What to do, for a goal."""

    goal: Goal
    tried: Sequence[Tried]
    best: Tried | None
    """None where nothing helped for that goal."""
    front: Sequence[Tried]
    """What gains, and is beaten in both time and memory by none; by time."""
    memory: str = "peak_rss_kib"
    """The metric that its memory is."""
    rounds: int = 0
    """That were run whole."""
    enough_s: float | None = None
    """A time budget that would probably do for all that was tried; None where it is not known."""

    @property
    def unknown(self) -> list[Tried]:
        """What was run in too few rounds to tell whether it is better."""
        return [each for each in self.tried if each.is_unknown(self.goal)]

    @property
    def plain(self) -> Tried | None:
        """The allocator of the best alone, where the best has a setting or a switch beside it, and it was tried."""
        return next((each for each in self.tried if self.credits_setting and self._is_bare(each)), None)

    @property
    def credits_setting(self) -> bool:
        """Whether the best is another allocator than the C library's, with a setting or a switch beside it."""
        best = self.best
        return best is not None and best.remedy is not None and best.remedy.allocator != "glibc" and not best.is_plain

    def _is_bare(self, each: Tried) -> bool:
        best = self.best.remedy if self.best is not None else None
        return (
            each.is_plain and each.remedy is not None and best is not None and each.remedy.allocator == best.allocator
        )


def apart(one: Ratio | None, other: Ratio | None) -> bool:
    """Whether two ratios to the same program are told apart: their intervals have nothing in common."""
    if one is None or other is None:
        return False
    return one.high < other.low or other.high < one.low


def judge(
    summary: Summary,
    workload: Workload,
    remedies: Mapping[str, Remedy],
    goal: Goal,
    memory: str = "peak_rss_kib",
    *,
    discarded: Mapping[str, str] | None = None,
    enough_s: float | None = None,
) -> Verdict:
    """Weigh what was tried.

    Args:
        summary: of rounds of the untouched program, which is its baseline, and remedies.
        workload: what was measured.
        remedies: by the name of their configuration.
        memory: the metric that is the program's memory.
        discarded: configurations whose figures are none, whatever they are, with the reason.
        enough_s: a time budget that would do, should there be too few rounds.
    """
    untrue = discarded or {}
    tried = [
        replace(
            Tried.of(cell, workload.time, memory, untrue.get(cell.configuration)),
            remedy=remedies.get(cell.configuration),
        )
        for cell in summary.cells
        if cell.workload == workload.name and cell.configuration != summary.baseline
    ]
    helped = [each for each in tried if each.discarded is None and each.helps(goal)]
    best = min(helped, key=lambda each: (_cost(each, goal), each.sure_memory, each.sure_time), default=None)
    gaining = [each for each in tried if each.discarded is None and each.gains]
    front = [each for each in gaining if not any(beats(other, each) for other in gaining)]
    front = sorted(front, key=lambda each: (each.sure_time, each.sure_memory))
    return Verdict(goal, tried, best, front, memory, summary.rounds_complete, enough_s)


def _cost(each: Tried, goal: Goal) -> float:
    return {"time": each.sure_time, "memory": each.sure_memory}.get(goal, each.sure_time * each.sure_memory)


def beats(one: Tried, other: Tried) -> bool:
    """As good in both, and better in one."""
    mine, theirs = (one.sure_time, one.sure_memory), (other.sure_time, other.sure_memory)
    return mine != theirs and mine[0] <= theirs[0] and mine[1] <= theirs[1]
