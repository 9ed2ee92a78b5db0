"""What a block costs by its size, as a program says it. Pure functions.

Any workload may say nanoseconds by what is done and by size in bytes, as ``sizes-benchmark`` does: ``malloc_ns/64``.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from freestone.records.schema import TrialRecord


@dataclass(frozen=True)
class Course:
    """What is done to the blocks of one figure."""

    title: str
    deed: str
    """What the dark bar costs: the program's figure is ``DEED_ns/SIZE``."""
    whole: str | None = None
    """What the dark and the light bar cost together."""
    meaning: str = ""


COURSES = (
    Course("malloc and free, by size", "malloc", "malloc_free", "malloc, and malloc with free"),
    Course("calloc, by size", "calloc", None, "calloc alone; the blocks are freed off the clock"),
    Course("Every page touched, by size", "touch", None, "malloc and one byte written in every page"),
    Course("Every byte written, by size", "memset", None, "malloc and memset of the whole block"),
)


@dataclass(frozen=True)
class Bar:
    """Medians over trials, nanoseconds a block."""

    size: int
    deed: float
    whole: float | None
    low: float
    high: float
    """The smallest and the largest trial of the whole; of the deed where there is nothing more."""

    @property
    def top(self) -> float:
        """What everything on the clock costs."""
        return self.deed if self.whole is None else self.whole


def courses(records: Iterable[TrialRecord], workload: str) -> list[Course]:
    """The courses of which a workload says something; none for most workloads."""
    names = {
        name.partition("/")[0]
        for record in records
        if record.workload == workload and record.status == "ok"
        for name in record.figures or ()
        if _size(name) is not None
    }
    return [course for course in COURSES if f"{course.deed}_ns" in names]


def bars(records: Iterable[TrialRecord], workload: str, configuration: str, course: Course) -> list[Bar]:
    """One bar for each size of which a trial that counts says what it costs, in ascending order.

    What is not above zero has no place on a logarithmic axis and is left out.
    """
    deed: dict[int, list[float]] = {}
    whole: dict[int, list[float]] = {}
    for record in records:
        mine = (record.workload, record.configuration, record.repeat) == (workload, configuration, 0)
        if not mine or record.status != "ok":
            continue
        for name, value in (record.figures or {}).items():
            size = _size(name)
            head = name.partition("/")[0]
            if size is not None and value > 0:
                if head == f"{course.deed}_ns":
                    deed.setdefault(size, []).append(value)
                elif head == f"{course.whole}_ns":
                    whole.setdefault(size, []).append(value)
    found = []
    for size in sorted(deed):
        trials = whole.get(size) or deed[size]
        together = statistics.median(whole[size]) if size in whole else None
        found.append(Bar(size, statistics.median(deed[size]), together, min(trials), max(trials)))
    return found


def _size(figure: str) -> int | None:
    head, _, case = figure.partition("/")
    return int(case) if head.endswith("_ns") and case.isascii() and case.isdecimal() and int(case) > 0 else None
