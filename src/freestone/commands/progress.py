"""The progress of an experiment: one live line on a terminal, a line now and then elsewhere.

Nothing is drawn while a trial runs: a clock that ticks on the screen takes time from what is measured. A server under
load is the exception, a line each second with its memory: its trials are long, and it is not alone on the machine.
"""

from __future__ import annotations

import textwrap
import threading
import time
from collections.abc import Callable, Collection
from typing import TextIO

from freestone.analysis import headline, own_heaps
from freestone.commands import terminal
from freestone.experiments.events import (
    BudgetSpent,
    Event,
    GivenUp,
    HeapsSeen,
    NeverReady,
    RehearsalStarted,
    ServerSeen,
    StageFailed,
    StageStarted,
    ToldNothing,
    TrialEnded,
    TrialStarted,
    WarmUpStarted,
)
from freestone.reports import sparkline
from freestone.trials import Moment

PLAIN_EVERY_S = 10.0
_READY = "--ready has to succeed when this server answers, and --ready-timeout gives it longer"
COURSE_COLUMNS = 24
LONG_REHEARSAL_S = 30.0
"""A rehearsal that lasts so long may be of a server, which would never end."""
MOST_QUOTED = 20
"""Lines of a command's output, the last ones."""
_CONSEQUENCE = {"setup": "; it is not run now", "cleanup": "; what was measured is kept"}


class Progress:
    """Shows events on a stream, usually standard error.

    Args:
        stream: where to.
        clock: seconds, for the pace of plain lines.
        several: whether there are several workloads, which then have to be named.
        servers: workloads that are known to be servers.
    """

    def __init__(
        self,
        stream: TextIO,
        clock: Callable[[], float] = time.monotonic,
        *,
        several: bool = False,
        servers: Collection[str] = (),
    ) -> None:
        self.stream = stream
        self.clock = clock
        self.several = several
        self.servers = servers
        self.waiting: threading.Timer | None = None
        self.live = terminal.has_colour(stream) or (terminal.is_terminal(stream) and not _is_dumb())
        self.ascii = terminal.is_ascii(stream)
        self.drawn = False
        self.said: set[tuple[str, str | None]] = set()
        self.last_plain = -float("inf")
        self.memory: list[int] = []

    def __call__(self, event: Event) -> None:
        """Show one event."""
        self._stop_waiting()
        match event:
            case RehearsalStarted():
                if event.workload not in self.servers:
                    self._wait()
                self._now(
                    f"rehearsal {event.number + 1}/{event.total}", [self._arm(event.workload, event.configuration)]
                )
            case StageStarted():
                self._now(event.title, [event.workload])
            case StageFailed():
                self.line(f"{event.workload}: {event.failure.reason}{_CONSEQUENCE.get(event.title, '')}")
                self._quote(event.failure.output)
            case WarmUpStarted():
                self._now(f"warm-up {event.number + 1}/{event.total}", [self._arm(event.workload, event.configuration)])
            case ServerSeen():
                self.memory.append(event.moment.rss_kib)
                told = [self._arm(event.slot.workload, event.slot.configuration), *self._server(event.moment)]
                self._now(f"round {event.slot.round + 1}/{event.rounds}", told)
            case HeapsSeen():
                for sentence in own_heaps.sentences(event.asked, event.heaps):
                    self._once(f"{event.workload}: {sentence}")
            case NeverReady():
                self.line(f"{event.workload}: twice, {event.reason}; it is not measured: {_READY}")
            case ToldNothing():
                self.line(f"{event.workload}: {event.reason}; it is not measured")
            case TrialStarted():
                self.memory.clear()
                left = "" if event.remaining_s is None else f"{duration(event.remaining_s)} left"
                details = [text for text in (left, self._arm(event.slot.workload, event.slot.configuration)) if text]
                self._now(f"round {event.slot.round + 1}/{max(event.rounds, event.slot.round + 1)}", details)
            case TrialEnded():
                record = event.record
                said = (record.status, record.reason)
                if record.status != "ok" and said not in self.said:
                    self.said.add(said)
                    arm = self._arm(record.workload, record.configuration)
                    self.line(f"{arm}, round {record.round + 1}: {record.status}: {record.reason}")
                    self._quote(record.stage_output or "")
            case GivenUp():
                pass  # its failures have been named, and the table names them again
            case BudgetSpent():
                self.line(f"time budget spent after {event.rounds} round{'' if event.rounds == 1 else 's'}")

    def _quote(self, output: str) -> None:
        """What a command has written that failed, where that is more than the line its failure is told by."""
        lines = [line for line in map(_printable, output.splitlines()) if line.strip()]
        for line in lines[-MOST_QUOTED:] if len(lines) > 1 else []:
            self._write(f"  | {line}\n")

    def _server(self, moment: Moment) -> list[str]:
        """What a server is doing, and its memory with the way it took."""
        told = [f"{moment.phase} {duration(moment.since_s)}", f"{moment.rss_kib / 1024:,.0f} MiB"]
        return told if self.ascii or not self.live else [*told, sparkline.course(self.memory, COURSE_COLUMNS)]

    def _once(self, text: str) -> None:
        if ("", text) not in self.said:
            self.said.add(("", text))
            self.note(text)

    def _wait(self) -> None:
        """Say of a rehearsal that does not end what it may be. Nothing is measured in one, so a clock may tick."""
        self.waiting = threading.Timer(LONG_REHEARSAL_S, self._once, [f"still running: {headline.A_SERVER}"])
        self.waiting.daemon = True
        self.waiting.start()

    def _stop_waiting(self) -> None:
        if self.waiting is not None:
            self.waiting.cancel()
            self.waiting = None

    def step(self, what: str, workload: str, configuration: str) -> None:
        """Show that something is done with one workload under one configuration."""
        self._now(what, [self._arm(workload, configuration)])

    def _arm(self, workload: str, configuration: str) -> str:
        return f"{workload} under {configuration}" if self.several else configuration

    def note(self, text: str) -> None:
        """A sentence that stays, broken where the terminal ends; a log has one line for it."""
        if not self.live:
            self.line(" ".join(text.split()))
            return
        width = terminal.width() - 1 - len("freestone: ")
        self.line("\n  ".join(textwrap.wrap(text, max(20, width), break_on_hyphens=False)))

    def line(self, text: str) -> None:
        """A line that stays."""
        self.clear()
        self._write(f"freestone: {text}\n")

    def clear(self) -> None:
        """Take the live line away."""
        self._stop_waiting()
        if self.drawn:
            self._write("\r\x1b[K")
            self.drawn = False

    def _now(self, what: str, details: list[str]) -> None:
        separator = " | " if self.ascii else " · "
        if self.live:
            text = separator.join([what, *details])
            # A line that wraps cannot be taken back.
            self._write("\r\x1b[K" + text[: terminal.width() - 1])
            self.drawn = True
        elif self.clock() - self.last_plain >= PLAIN_EVERY_S:
            self.last_plain = self.clock()
            self._write("freestone: " + ", ".join([what, *details]) + "\n")

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):
            pass  # the terminal went away; the measurement goes on


def duration(seconds: float) -> str:
    """``9 s``, ``1 min 05 s``, ``2 h 03 min``."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def _printable(line: str) -> str:
    """A line of somebody else's, without what would steer the terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in line)


def _is_dumb() -> bool:
    import os

    return os.environ.get("TERM", "dumb") == "dumb"
