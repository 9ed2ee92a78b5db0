"""What a record's notes say of figures that are left out, so that whoever tells the others finds it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

_LEFT_OUT: Final = " is left out: "


def left_out(figure: str, why: str) -> str:
    """One note.

    Args:
        figure: as a table names it.
        why: the same words for the same reason, whatever the numbers were.
    """
    return f"{figure}{_LEFT_OUT}{why}"


def told_left_out(notes: Iterable[Iterable[str]]) -> list[str]:
    """Each such note once, with the number of records that have it.

    Args:
        notes: those of each record.
    """
    records = [list(each) for each in notes]
    counts = Counter(note for each in records for note in dict.fromkeys(each) if _LEFT_OUT in note)
    return [f"{note} ({count} of {len(records)} runs)" for note, count in counts.items()]
