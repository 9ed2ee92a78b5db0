"""What programs say of themselves, put into records: costs by size, calls by how long they took."""

from __future__ import annotations

from collections.abc import Iterable

from freestone.records.schema import TrialRecord

CALLS = {
    "malloc_and_write_calls/32": 1000.0,
    "malloc_and_write_ns/median": 20.0,
    "malloc_calls/16": 998.0,
    "malloc_calls/2048": 2.0,
    "malloc_ns/median": 12.0,
    "malloc_ns/p99.9": 1500.0,
    "malloc_ns/p99.99": 2000.0,
    "free_calls/8": 1000.0,
    "free_ns/median": 5.0,
}
"""Of malloc, alone and with the first write of its block, and of free."""


def by_size(records: Iterable[TrialRecord], **costs: dict[int, float]) -> list[TrialRecord]:
    """The records with figures of a program that tells costs by size; each round a little dearer."""
    return [
        record.model_copy(
            update={
                "figures": {
                    f"{deed}_ns/{size}": value * (1 + record.round / 100)
                    for deed, by_size in costs.items()
                    for size, value in by_size.items()
                }
            }
        )
        for record in records
    ]


def call_by_call(records: Iterable[TrialRecord], **calls: dict[int, int]) -> list[TrialRecord]:
    """The records with figures of a program that tells histograms of its calls."""
    said = {f"{deed}_calls/{end}": float(n) for deed, by_end in calls.items() for end, n in by_end.items()}
    return [record.model_copy(update={"figures": {"seconds": 1.0, **said}}) for record in records]


def with_calls(records: Iterable[TrialRecord]) -> list[TrialRecord]:
    """The records with :data:`CALLS`, and the longest call of malloc a little longer in each round."""
    return [
        record.model_copy(update={"figures": CALLS | {"malloc_ns/longest": 2000.0 + record.round}})
        for record in records
    ]
