"""How long single calls of malloc and free take: which share of them is slower than so many nanoseconds.

Any workload may tell a histogram of its calls, as ``tails`` does: ``malloc_calls/64`` calls took less than
64 ns, and no less than the bucket before ends at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from freestone.records.schema import HISTOGRAM, Experiment, Summary, TrialRecord
from freestone.reports.shown import counting, order_of

DEEDS = ("malloc_and_write", "malloc", "free")
"""malloc with the first write of its block; the bare call, in which some touch the block and some do not; free."""

NOTHING = "nothing"
"""What stands in a histogram where a call would: two looks at the clock, and what the machine does between them."""

Histogram = Mapping[int, int]
"""Calls by where their bucket ends, in nanoseconds."""


@dataclass(frozen=True)
class Point:
    """So large a share of the calls took ``ns`` or longer."""

    ns: int
    share: float


def histogram(records: Iterable[TrialRecord], workload: str, configuration: str | None, deed: str) -> dict[int, int]:
    """The calls of all trials that count, of one configuration or of all of them."""
    calls: Counter[int] = Counter()
    for record in records:
        if not _counts(record, workload, configuration):
            continue
        for name, value in (record.figures or {}).items():
            head, _, end = name.partition(HISTOGRAM)
            if head == deed and end.isascii() and end.isdecimal() and int(end) > 0 and value >= 1:
                calls[int(end)] += round(value)
    return dict(sorted(calls.items()))


def values(records: Iterable[TrialRecord], workload: str, configuration: str | None, figure: str) -> list[float]:
    """A figure in all trials that count, of one configuration or of all of them."""
    return [
        value
        for record in records
        if _counts(record, workload, configuration) and (value := (record.figures or {}).get(figure)) is not None
    ]


def _counts(record: TrialRecord, workload: str, configuration: str | None) -> bool:
    mine = record.workload == workload and configuration in (None, record.configuration)
    return mine and record.status == "ok" and not record.repeat


def course(calls: Histogram, longest: float | None = None) -> list[Point]:
    """From the fastest calls to the slowest; the last two points are the bucket that holds the longest call.

    Args:
        longest: how long that took, in nanoseconds; None where it is not told: then its bucket's end stands for it.
    """
    whole = left = sum(calls.values())
    points: list[Point] = []
    for end in sorted(calls):
        before, left = left, left - calls[end]
        points.append(Point(end, (left or before) / whole))
    if points and longest is not None:
        least = points[-2].ns if len(points) > 1 else 1
        points[-1] = Point(min(points[-1].ns, max(least, round(longest))), points[-1].share)
    return points


def course_of(records: Sequence[TrialRecord], workload: str, configuration: str | None, deed: str) -> list[Point]:
    """The calls of all trials of one configuration, or of all of them, as a line; empty where nothing is told."""
    calls = histogram(records, workload, configuration, deed)
    return course(calls, max(values(records, workload, configuration, f"{deed}_ns/longest"), default=None))


def courses(
    experiment: Experiment, summary: Summary, records: Sequence[TrialRecord], workload: str, deed: str
) -> dict[str, list[Point]]:
    """Of each configuration with a result that tells of calls, in the order of the report; none for most workloads."""
    mine = counting(summary, records, [workload])
    return {
        name: line
        for name in order_of(experiment, summary, workload)
        if (line := course_of(mine, workload, name, deed))
    }


def one_in(share: float) -> str:
    """A share as people say it: ``all``, ``1 in 10``, ``1 in 2,500``."""
    return "all" if share >= 0.9995 else f"1 in {float(f'{1 / share:.3g}'):,.10g}"
