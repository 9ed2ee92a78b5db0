"""Clocks of two machines, by what they say of one order. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

MOST_APART_S: Final = 60.0
"""Clocks that differ by more are told of: the times of day in the records are each machine's own."""


def apart_s(ordered_at: str, now: datetime, started_at: Sequence[str]) -> float | None:
    """How far a place's clock is at least from this one, in seconds; None where it may be right.

    Nothing of an order is started before it was given, nor after now.

    Args:
        ordered_at: when the order was given, by the clock here, in ISO 8601.
        now: by the clock here, with its zone.
        started_at: when trials were started, by the clock there; what is no time is passed over.
    """
    given = _read(ordered_at)
    there = [at for text in started_at if (at := _read(text)) is not None]
    if given is None or not there:
        return None
    apart = max((given - min(there)).total_seconds(), (max(there) - now).total_seconds())
    return apart if apart > MOST_APART_S else None


def told(apart: float) -> str:
    """What is said of it."""
    return f"its clock is {apart:.0f} s apart from this one; the times of day in its records are its own"


def _read(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
