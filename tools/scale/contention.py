"""A simulator of contention: threads that each have a CPU play what they were counted to do. Pure.

A thread's calls take ``call_ns`` each. Where one took a lock, the thread holds it for ``hold_ns`` of that lock, and
``handover_ns`` longer where another thread had it before: the lock's line and those that it protects travel. Who finds
it taken waits, first come, first served. Nobody is woken or interrupted at a cost, and no thread waits for another's
blocks: only locks hold threads up.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from scale.counted import Event


@dataclass(frozen=True)
class Prices:
    """Nanoseconds: of a call past its locks, of a hold by the number of the lock, of one that another thread had."""

    call_ns: float
    hold_ns: Mapping[int, float]
    handover_ns: float


@dataclass(frozen=True)
class Step:
    """After so many calls a thread takes or frees a lock."""

    calls: float
    lock: int
    takes: bool


@dataclass(frozen=True)
class Outcome:
    """The share of all threads' time that is waiting; of the time, that in which a lock is held, the busiest."""

    waiting: float
    held: float
    busiest: int | None = None


@dataclass
class _Lock:
    holder: int | None = None
    last: int | None = None
    since: float = 0.0
    held: float = 0.0
    queue: deque[tuple[int, float]] = field(default_factory=deque)


def scripts(events: Iterable[Event], threads: int) -> list[list[Step]]:
    """What each thread does, from what was counted; a lock that is freed and was taken before that is left out."""
    steps: list[list[Step]] = [[] for _ in range(threads)]
    last: list[int | None] = [None] * threads
    held: list[set[int]] = [set() for _ in range(threads)]
    for event in events:
        thread = event.thread
        if not event.takes and event.lock not in held[thread]:
            continue
        (held[thread].add if event.takes else held[thread].discard)(event.lock)
        before = last[thread]
        steps[thread].append(Step(event.call - before if before is not None else 0, event.lock, event.takes))
        last[thread] = event.call
    for thread, locks in enumerate(held):
        steps[thread] += [Step(0, lock, False) for lock in locks]
    return steps


def play(steps: Sequence[Sequence[Step]], prices: Prices) -> Outcome:
    """All threads from the start to the last one's end; those without a step are left out."""
    locks: dict[int, _Lock] = {}
    place = [0] * len(steps)
    waited = [0.0] * len(steps)
    ends = [0.0] * len(steps)
    ready: list[tuple[float, int]] = []

    def arrive(thread: int, now: float) -> None:
        """At its next step, once the calls before that are made."""
        if place[thread] < len(steps[thread]):
            heapq.heappush(ready, (now + steps[thread][place[thread]].calls * prices.call_ns, thread))
        else:
            ends[thread] = now

    def acquire(thread: int, number: int, now: float) -> None:
        lock = locks[number]
        travels = lock.last is not None and lock.last != thread
        lock.holder = lock.last = thread
        lock.since = now
        place[thread] += 1
        arrive(thread, now + prices.hold_ns.get(number, 0.0) + (prices.handover_ns if travels else 0.0))

    for thread in range(len(steps)):
        arrive(thread, 0.0)
    while ready:
        now, thread = heapq.heappop(ready)
        step = steps[thread][place[thread]]
        lock = locks.setdefault(step.lock, _Lock())
        if step.takes and lock.holder is not None:
            lock.queue.append((thread, now))
        elif step.takes:
            acquire(thread, step.lock, now)
        else:
            lock.holder = None
            lock.held += now - lock.since
            if lock.queue:
                other, since = lock.queue.popleft()
                waited[other] += now - since
                acquire(other, step.lock, now)
            place[thread] += 1
            arrive(thread, now)
    whole = max(ends, default=0.0)
    busiest = max(locks, key=lambda number: locks[number].held, default=None)
    return Outcome(
        waiting=sum(waited) / sum(ends) if sum(ends) > 0 else 0.0,
        held=locks[busiest].held / whole if busiest is not None and whole > 0 else 0.0,
        busiest=busiest,
    )
