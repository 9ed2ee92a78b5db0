"""The end of a bug, from the way its program ended: pure."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

EXIT_USAGE, EXIT_UNFIT = 64, 65
"""tests/misuses/misuse.h"""

# Lines that no allocator wrote, but the loader, the C++ library, or the C library for another reason than its heap.
_NOT_ITS_OWN = re.compile(r"ERROR: ld\.so|terminate called|  what\(\): |stack smashing detected")
_ENDED_ON_PURPOSE = (signal.SIGABRT, signal.SIGTRAP, signal.SIGILL, signal.SIGSYS)
_FAULTS = (signal.SIGSEGV, signal.SIGBUS)
_TIME_IS_UP = (signal.SIGXCPU, signal.SIGKILL)


class Stop(Enum):
    """What became of a bug. The value is the word of the page."""

    REPORTED = "reported at once"
    REPORTED_LATE = "reported late"
    GUARDED = "guarded page at once"
    GUARDED_LATE = "guarded page late"
    TOLD = "told or refused"
    HARMLESS = "harmless"
    CRASHED = "crashed by chance"
    NEVER = "never"
    INVALID = "invalid"

    @property
    def counts(self) -> bool:
        """Whether the allocator did something about it. Harm that did not happen, or a crash, is luck."""
        return self in COUNTED


COUNTED = (Stop.REPORTED, Stop.GUARDED, Stop.REPORTED_LATE, Stop.GUARDED_LATE, Stop.TOLD)

MARKS = dict(zip(Stop, "●◐■◧◇○×·?", strict=True))
"""The sign of each in a table."""


@dataclass(frozen=True)
class Fault:
    """What lay at the address of the first fault, as ``/proc/self/maps`` has it."""

    rights: str
    """``rw-p``, ``---p`` ...; ``hole``: nothing lay there, or the address was none."""
    inode: int
    """Of the file that is mapped there; 0: memory of nobody's but a program's, or its allocator's."""

    @property
    def is_guarded(self) -> bool:
        """The programs make no memory without rights, so such memory is their allocator's: a page put there as a guard,
        what was freed and taken away, room held ready. What lies between the parts of a library has that one's inode.
        """
        return self.rights.startswith("---") and self.inode == 0


@dataclass(frozen=True)
class Evidence:
    """How a program ended, and what was written until then.

    Args:
        status: exit status, negative for a signal; None when it had to be ended: it hangs.
        words: of standard output: ``doing`` before the bug, ``done`` after it, ``harmed`` where it was felt,
            ``unharmed`` at the end where it was not.
        lines: of standard error, after the bug.
        fault: the first, if there was one.
    """

    status: int | None
    words: frozenset[str]
    lines: tuple[str, ...] = ()
    fault: Fault | None = None


def read(status: int | None, output: str, errors: str) -> Evidence:
    """The evidence in what a program wrote."""
    found = re.search(r"^fault (\S+) (\d+)$", output, re.M)
    _, _, after = errors.partition("doing\n")
    return Evidence(
        status,
        frozenset(output.split()),
        tuple(line for line in after.splitlines() if line.strip()),
        Fault(found[1], int(found[2])) if found else None,
    )


def judge(evidence: Evidence, *, frees: bool = False) -> Stop:
    """What became of the bug.

    Args:
        evidence: of one run.
        frees: the bug is a free that may not be: an allocator that carries it out does harm, so who does none has
            refused it.
    """
    words, status = evidence.words, evidence.status
    if "doing" not in words or status in (EXIT_USAGE, EXIT_UNFIT):
        return Stop.INVALID
    told = any(not _NOT_ITS_OWN.search(line) for line in evidence.lines)
    late = "done" in words
    if status == 0:
        if told:
            return Stop.TOLD
        if "unharmed" in words and "harmed" not in words:
            return Stop.TOLD if frees else Stop.HARMLESS
        return Stop.NEVER
    guarded = _is_fault(status) and evidence.fault is not None and evidence.fault.is_guarded
    if guarded and not told:
        return Stop.GUARDED_LATE if late else Stop.GUARDED
    if guarded or _was_ended(status, told, evidence.lines):
        return Stop.REPORTED_LATE if late else Stop.REPORTED
    return Stop.TOLD if told else Stop.CRASHED


def _is_fault(status: int | None) -> bool:
    return status is not None and -status in _FAULTS


def _was_ended(status: int | None, told: bool, lines: Sequence[str]) -> bool:
    """By the allocator: it said why, or nobody else said so."""
    if status is None or -status in (*_FAULTS, *_TIME_IS_UP):
        return False
    return told or (-status in _ENDED_ON_PURPOSE and not lines)
