"""What the counted library wrote, read and put together by kinds of locks, for a million calls. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import PurePath

HEAP, ARENA, GROWING, OTHER = "heap", "arena", "growing", "other"
HEAP_FILES = {"heap.c", "reclaim.c", "heap_figures.c", "check.c"}
"""Where a lock that is reached by a pointer is a heap's."""
MILLION = 1_000_000


class NotCounted(ValueError):
    """What cannot be read, in one line."""


@dataclass(frozen=True)
class Site:
    """An expression whose atomic is touched: how often, and how often its cache line had to travel for it."""

    file: str
    place: str
    loads: int = 0
    changes: int = 0
    travels: int = 0

    @property
    def name(self) -> str:
        """As a table has it."""
        return f"{self.file}: {self.place}"


@dataclass(frozen=True)
class Lock:
    """A lock: how often it was taken, and how often by another thread than before."""

    number: int
    kind: str
    taken: int
    handovers: int


@dataclass(frozen=True)
class Event:
    """A thread takes or frees a lock in its call of this number."""

    takes: bool
    thread: int
    call: int
    lock: int


@dataclass(frozen=True)
class Counted:
    """A run."""

    calls: int
    sites: tuple[Site, ...]
    locks: tuple[Lock, ...]
    events: tuple[Event, ...] = ()
    asked: Counter[str] = field(default_factory=Counter)
    """System calls about memory."""

    def per_million(self, number: int) -> float:
        """Of a number of the run, that for a million calls of malloc and free."""
        return number * MILLION / self.calls

    def taken(self, kind: str) -> float:
        """Locks of a kind taken, per million calls."""
        return self.per_million(sum(lock.taken for lock in self.locks if lock.kind == kind))

    def handovers(self, kind: str) -> float:
        """Those of them that another thread had before, per million calls."""
        return self.per_million(sum(lock.handovers for lock in self.locks if lock.kind == kind))

    @property
    def slow_paths(self) -> float:
        """Times a thread went inside, past its loaded magazines, per million calls."""
        return self.per_million(sum(site.changes for site in self.sites if site.place == "&cache->busy") // 2)

    @property
    def travels(self) -> float:
        """Lines that travelled for an atomic, per million calls, but for those of locks, which are handovers."""
        return self.per_million(sum(site.travels for site in self.sites if site.file != "lock.h"))

    @property
    def system_calls(self) -> float:
        """Those about memory, per million calls."""
        return self.per_million(self.asked.total())

    def most_travelled(self, count: int) -> list[tuple[Site, float]]:
        """The places whose lines travelled most, locks left out, each with its number per million calls."""
        chosen = sorted((site for site in self.sites if site.file != "lock.h"), key=lambda site: -site.travels)
        return [(site, self.per_million(site.travels)) for site in chosen[:count] if site.travels]


def kind_of(file: str, expression: str) -> str:
    """The kind of a lock, by who took it first."""
    if "->lock" in expression and file in HEAP_FILES:
        return HEAP
    if expression.endswith((".growing", ".opening")):
        return GROWING
    return ARENA if expression == "&arena.lock" else OTHER


def read(text: str) -> Counted:
    """What a run wrote.

    Raises:
        NotCounted: it is no whole run of a library that counts.
    """
    sites: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    asked: Counter[str] = Counter()
    locks, events, calls, whole = [], [], 0, False
    for line in text.splitlines():
        what, *words = line.split("\t")
        if what == "site":
            file, place = PurePath(words[0]).name, words[1]
            loads, stores, changes, travels = map(int, words[2:])
            for index, more in enumerate((loads, stores + changes, travels)):
                sites[file, place][index] += more
        elif what == "lock":
            number, file, expression, taken, handovers = words
            kind = kind_of(PurePath(file).name, expression)
            locks.append(Lock(int(number), kind, int(taken), int(handovers)))
        elif what in ("take", "free"):
            thread, call, lock = map(int, words)
            events.append(Event(what == "take", thread, call, lock))
        elif what == "call":
            asked[words[0]] += int(words[1])
        elif what == "lost":
            whole = words == ["0"]
        elif what == "calls":
            calls = int(words[0])
    if not whole or calls == 0:
        raise NotCounted("the program wrote no whole count: it was not served by a library that counts")
    put = tuple(Site(file, place, *numbers) for (file, place), numbers in sorted(sites.items()))
    return Counted(calls, put, tuple(locks), tuple(events), asked)
