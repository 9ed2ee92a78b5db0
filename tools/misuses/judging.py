"""What a program's end tells: pure."""

from __future__ import annotations

from enum import Enum

EXIT_USAGE, EXIT_UNFIT = 64, 65
"""tests/misuses/misuse.h"""


class Stop(Enum):
    """When a bug is stopped. The value is the word of the page."""

    AT_ONCE = "at once"
    LATE = "late"
    HARMLESS = "harmless"
    NEVER = "never"
    INVALID = "invalid"

    @property
    def counts(self) -> bool:
        """Whether the bug did not get through: stopped at some time, or given nothing to harm."""
        return self in (Stop.AT_ONCE, Stop.LATE, Stop.HARMLESS)


def judge(status: int | None, said: str) -> Stop:
    """By how the program ended, and how far it had come.

    Args:
        status: exit status, negative for a signal; None when it had to be ended: it hangs.
        said: standard output: ``doing`` before the bug, ``done`` or ``harmless`` after it.
    """
    words = said.split()
    if "doing" not in words or status in (EXIT_USAGE, EXIT_UNFIT):
        return Stop.INVALID
    if status is None or status == 0:
        return Stop.HARMLESS if "harmless" in words and status == 0 else Stop.NEVER
    return Stop.LATE if "done" in words or "harmless" in words else Stop.AT_ONCE
