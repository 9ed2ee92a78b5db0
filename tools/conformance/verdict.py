"""What the end of a program means: pure."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from conformance.process import Ended


class Kind(StrEnum):
    """What is said of one allocator before one hazard."""

    PASS = "pass"
    FAIL = "fail"
    CRASH = "crash"
    HANG = "hang"
    INVALID = "invalid"
    NOT_APPLICABLE = "not applicable"
    NOT_TRIED = "not tried"


WORST_FIRST = (Kind.CRASH, Kind.HANG, Kind.FAIL, Kind.INVALID, Kind.PASS, Kind.NOT_TRIED, Kind.NOT_APPLICABLE)
BAD = frozenset({Kind.CRASH, Kind.HANG, Kind.FAIL, Kind.INVALID})

_BY_STATUS = {0: Kind.PASS, 1: Kind.FAIL, 75: Kind.NOT_APPLICABLE, 77: Kind.NOT_TRIED, 78: Kind.INVALID}
"""Exit statuses of the programs: of the tests of the allocator (expect.h), and of the proof of service (serving.c)."""

_WHERE = re.compile(r"^(?:\S+:\d+: does not hold: .*?: (?=\S))+")
"""What the tests of the allocator begin a line with: place and condition, which mean nothing in a table."""
_FOLDERS = re.compile(r"(?<![\w.])/(?!sys|proc|dev)(?:[\w.+-]+/)+")
"""The folders of a file, which are of one machine."""
_LINE_MOST = 160


@dataclass(frozen=True)
class Verdict:
    """The answer and its figure or reason."""

    kind: Kind
    figure: str = ""

    @property
    def bad(self) -> bool:
        return self.kind in BAD


def judge(ended: Ended, limit_s: float) -> Verdict:
    """The verdict on one run."""
    if ended.status is None:
        return Verdict(Kind.HANG, f"not ended after {limit_s:g} s")
    said, complaint = last_line(ended.stdout), last_line(ended.stderr)
    if ended.status < 0:
        if -ended.status == signal.SIGALRM:
            return Verdict(Kind.HANG, said or "its alarm ended it")
        return Verdict(Kind.CRASH, _and(_signal_name(-ended.status), complaint))
    kind = _BY_STATUS.get(ended.status)
    if kind is None:
        return Verdict(Kind.FAIL, _and(f"exit status {ended.status}", complaint or said))
    if kind is Kind.PASS:
        return Verdict(kind, said)
    # A program that fails and does not say how far has not been understood by who wrote it.
    return Verdict(kind, complaint.removeprefix("skipped: ") or said or "without a figure")


def figure_of(ended: Ended) -> float | None:
    """The number that a program ended well with, as its last word."""
    if ended.status != 0:
        return None
    try:
        return float(last_line(ended.stdout))
    except ValueError:
        return None


def compare(own: float, floor: float, *, times: float, slack: float, beside: str = "glibc") -> Verdict:
    """A number beside that of another allocator in the same run."""
    most = floor * times + slack
    return Verdict(Kind.PASS if own <= most else Kind.FAIL, f"{own:.4g}, {beside} {floor:.4g}, at most {most:.4g}")


def worst(answers: Sequence[tuple[str, Verdict]]) -> Verdict:
    """One verdict out of those of all runs: the worst kind, with the figures of the runs that gave it."""
    if not answers:
        raise ValueError("no run, no verdict")
    kind = min((verdict.kind for _, verdict in answers), key=WORST_FIRST.index)
    chosen = [(run, verdict.figure) for run, verdict in answers if verdict.kind is kind]
    if len(answers) == 1:
        return Verdict(kind, chosen[0][1])
    said = [f"{run}: {figure}" if kind in BAD else figure for run, figure in chosen if figure or kind in BAD]
    return Verdict(kind, "; ".join(dict.fromkeys(said)))


def last_line(text: str) -> str:
    """The last line with anything in it, without places, and not all of it where it is long."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return _FOLDERS.sub("", _WHERE.sub("", lines[-1]))[:_LINE_MOST] if lines else ""


def _and(what: str, more: str) -> str:
    return f"{what}: {more}" if more else what


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
