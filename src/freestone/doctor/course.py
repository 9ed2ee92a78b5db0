"""Follows a tree of processes from outside while it runs: size, resident set, faults; and where its memory lies."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from freestone.doctor import kept
from freestone.doctor.observations import Kept, Point
from freestone.trials import tree

_FIRST_PAUSE_S: Final = 0.002
_MOST_POINTS: Final = 400
_DEAREST: Final = 50
"""A look may take this part of the time to the next of its kind: 2 %."""

_GROWN: Final = 1.1
"""By this factor a tree has to have grown until one looks again where its memory lies, which takes long."""


class Course:
    """Looks at the tree below a launcher, in a thread of its own, from :meth:`begin` to the end.

    Args:
        look: reads the tree by the launcher's number, or something else by another number.
    """

    def __init__(self, look: Callable[[int], tree.TreeReading] = tree.read) -> None:
        self._look = look
        self.points: list[Point] = []
        self.at_peak: Kept | None = None
        """Of the process that holds most, when it held most."""
        self.at_end: Kept | None = None
        """Of the same, at the last look at which it was there."""
        self._looked_kib = 0.0
        """The size of the tree at the last look at where memory lies..."""
        self._looked_s = 0.0
        """... its time, since the beginning..."""
        self._rest_s = 0.0
        """... and until when there is no other."""
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def begin(self, launcher: int) -> None:
        """Start looking; the ``begun`` of a run."""
        self._thread = threading.Thread(target=self._follow, args=(launcher,), daemon=True)
        self._thread.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _follow(self, launcher: int) -> None:
        begun_s = time.monotonic()
        pause_s = _FIRST_PAUSE_S
        while not self._over.is_set():
            at_s, worked_s = time.monotonic() - begun_s, time.thread_time()
            seen = self._look(launcher)
            # Waiting for a processor is no work of ours, and no reason to look seldom.
            took_s = time.thread_time() - worked_s
            if seen.rss_kib > 0:  # who is ending has given its memory back already
                self.points.append(
                    Point(
                        at_s=at_s,
                        virtual_kib=seen.virtual_kib,
                        rss_kib=seen.rss_kib,
                        faults=seen.minor_faults,
                        cpu_s=seen.cpu_s,
                    )
                )
                self._look_where(seen, at_s)
                if len(self.points) >= _MOST_POINTS:
                    self.points = self.points[::2]
                    pause_s *= 2
            self._over.wait(max(pause_s, _DEAREST * took_s))

    def _look_where(self, seen: tree.TreeReading, at_s: float) -> None:
        """Where the memory of the largest lies: at its growth, and now and then, as seldom as such a look is dear."""
        grown = seen.rss_kib > _GROWN * self._looked_kib
        due = at_s > 1.25 * self._looked_s + 0.05
        if seen.largest is None or not (grown or due) or at_s < self._rest_s:
            return
        worked_s = time.thread_time()
        found = kept.look(seen.largest, at_s)
        self._rest_s, self._looked_s = at_s + _DEAREST * (time.thread_time() - worked_s), at_s
        if found is not None and found.rss_kib > 0:
            self._looked_kib = max(self._looked_kib, seen.rss_kib)
            self.at_end = found
            if self.at_peak is None or found.rss_kib >= self.at_peak.rss_kib:
                self.at_peak = found
