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
"""A look may take this part of the time to the next: 2 %."""

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
        pause_s, looked_kib, last_kept_s = _FIRST_PAUSE_S, 0.0, 0.0
        while not self._over.is_set():
            before_s, worked_s = time.monotonic(), time.thread_time()
            seen = self._look(launcher)
            if seen.processes:
                at_s = before_s - begun_s
                self.points.append(
                    Point(
                        at_s=at_s,
                        virtual_kib=seen.virtual_kib,
                        rss_kib=seen.rss_kib,
                        faults=seen.minor_faults,
                        cpu_s=seen.cpu_s,
                    )
                )
                grown = seen.rss_kib > _GROWN * looked_kib
                if seen.largest is not None and (grown or at_s > 1.25 * last_kept_s + 0.05):
                    found = kept.look(seen.largest, at_s)
                    last_kept_s = at_s
                    if found is not None and found.rss_kib > 0:
                        looked_kib = max(looked_kib, seen.rss_kib)
                        self.at_end = found
                        if self.at_peak is None or found.rss_kib >= self.at_peak.rss_kib:
                            self.at_peak = found
                if len(self.points) >= _MOST_POINTS:
                    self.points = self.points[::2]
                    pause_s *= 2
            # Waiting for a processor is no work of ours, and no reason to look seldom.
            self._over.wait(max(pause_s, _DEAREST * (time.thread_time() - worked_s)))
