"""What the exit status of a verb means, and the exception that ends one early."""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """Exit statuses of the lab's verbs; ``docs/reference/cli.md`` lists them for users."""

    FINE = 0
    INTERNAL = 1
    USAGE = 2
    NOTHING_MEASURED = 3
    PARTLY_MEASURED = 4
    STORE = 5
    EXCEEDED = 6
    NOT_EXECUTABLE = 126
    NOT_FOUND = 127
    INTERRUPTED = 130


class Stop(Exception):
    """Ends a verb with one line and an exit status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
