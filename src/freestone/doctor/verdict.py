"""Which remedy helped: what is kept, what is best for a goal, and what cannot be had together. Pure.

A remedy counts only where its interval excludes no change. A gain that cannot be told from nothing is none, and a loss
likewise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from freestone.analysis.statistics import FEWEST_PAIRS
from freestone.doctor.goal import Goal
from freestone.doctor.remedies import Remedy
from freestone.records.schema import Cell, Ratio, Summary, Workload

LEAST_ROUNDS: Final = 6
"""For so many rounds there is time when remedies are chosen: rather fewer are tried. With :data:`FEWEST_PAIRS`, which
are enough for an interval, only what is large is told apart."""


PRICE = 1.05
"""For a balanced goal: what one of time and memory may lose at most where the other gains."""


@dataclass(frozen=True)
class Tried:
    """A remedy and what it did, against the untouched program."""

    configuration: str
    remedy: Remedy | None
    """None for the program as it is."""
    time: Ratio | None
    memory: Ratio | None
    faults: Ratio | None
    discarded: str | None = None
    """Why it has no figures: it failed, printed something else, was not in force."""

    @property
    def sure_time(self) -> float:
        """The ratio where it is told apart from no change; else 1."""
        return _sure(self.time)

    @property
    def sure_memory(self) -> float:
        return _sure(self.memory)

    @property
    def gains(self) -> bool:
        return min(self.sure_time, self.sure_memory) < 1

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
        _tried(cell, workload.time, memory, remedies, untrue.get(cell.configuration))
        for cell in summary.cells
        if cell.workload == workload.name and cell.configuration != summary.baseline
    ]
    helped = [each for each in tried if each.discarded is None and helps(each, goal)]
    best = min(helped, key=lambda each: (_cost(each, goal), each.sure_memory, each.sure_time), default=None)
    gaining = [each for each in tried if each.discarded is None and each.gains]
    front = [each for each in gaining if not any(beats(other, each) for other in gaining)]
    front = sorted(front, key=lambda each: (each.sure_time, each.sure_memory))
    return Verdict(goal, tried, best, front, memory, summary.rounds_complete, enough_s)


def _tried(cell: Cell, time: str, memory: str, remedies: Mapping[str, Remedy], untrue: str | None) -> Tried:
    fine = cell.status == "ok" and untrue is None
    return Tried(
        cell.configuration,
        remedies.get(cell.configuration),
        cell.ratio.get(time) if fine else None,
        cell.ratio.get(memory) if fine else None,
        cell.ratio.get("minor_faults") if fine else None,
        None if fine else (untrue or cell.reason or cell.status),
    )


def helps(each: Tried, goal: Goal) -> bool:
    """Whether it is really better for the goal, at no price that the goal forbids."""
    match goal:
        case "time":
            return each.sure_time < 1
        case "memory":
            return each.sure_memory < 1
        case _:
            # As far as is known: what is not told apart from no change may still be a loss.
            return each.gains and max(_estimate(each.time), _estimate(each.memory)) <= PRICE


def _cost(each: Tried, goal: Goal) -> float:
    return {"time": each.sure_time, "memory": each.sure_memory}.get(goal, each.sure_time * each.sure_memory)


def beats(one: Tried, other: Tried) -> bool:
    """As good in both, and better in one."""
    mine, theirs = (one.sure_time, one.sure_memory), (other.sure_time, other.sure_memory)
    return mine != theirs and mine[0] <= theirs[0] and mine[1] <= theirs[1]


def _estimate(ratio: Ratio | None) -> float:
    return ratio.value if ratio is not None else 1.0


def _sure(ratio: Ratio | None) -> float:
    return ratio.value if ratio is not None and ratio.different else 1.0
