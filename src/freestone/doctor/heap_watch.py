"""Reads what the watcher of the heap left: a file for each process, its last state (``probes/heapwatch/state.h``).

Pure but for the folder's files. A process that a signal ended has left all but what is taken at an end that can be
foreseen: how many heaps there were, and what malloc_trim gave back.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from freestone.doctor.observations import HeapPoint, HeapUse, Realloc, Sizes
from freestone.trials.own_file import read as own_file

WATCHER: Final = "libfreestone-heapwatch.so"
FOLDER: Final = "FREESTONE_HEAPWATCH"
"""The variable that names the folder for its files."""

_MAGIC: Final = b"heapwat2"
_HEAD: Final = struct.Struct("=8s4I2Q3qQ5Ii2q2I64i")
_POINT: Final = struct.Struct("=QqQ5q")
_SIZES: Final = 48
_LIFETIMES: Final = 48
_COUNTS: Final = 14
_KNOBS: Final = 32
_TALLY: Final = struct.Struct(f"={_COUNTS + 2 * _SIZES + _LIFETIMES}QqII")
_NOT_SAID: Final = -1


class Damaged(ValueError):
    """A file is not what the watcher writes; the message is one line."""


def read_folder(folder: Path, ended_s: float | None = None) -> HeapUse | None:
    """Of all processes, the one that asked for most; None where none was watched, or asked for anything.

    Args:
        ended_s: when the run was over, by CLOCK_MONOTONIC: so long the last state of what a signal ended lasted.
    """
    found: list[tuple[int, Path]] = []
    for file in sorted(folder.iterdir()):
        try:
            found.append((_Head(own_file(file, _HEAD.size)).asked, file))
        except (OSError, Damaged):
            continue  # it was ended while its file was made
    for asked, file in sorted(found, key=lambda each: -each[0]):
        try:
            return parse(own_file(file), ended_s) if asked > 0 else None
        except (OSError, Damaged):
            continue
    return None


class _Head:
    """The head of a state, by the names of the C."""

    def __init__(self, content: bytes) -> None:
        if len(content) < _HEAD.size:
            raise Damaged("not a whole file of the watcher's")
        (
            magic, self.points_at, self.tallies_at, self.point_bytes, self.tally_bytes, self.begun_ns, self.active_ns,
            self.active_live, self.in_use, self.most, self.asked, _, self.most_threads, knob_count, self.count,
            self.claimed, self.pid, self.end_live, self.trimmed, self.arenas, left, *knobs,
        ) = _HEAD.unpack_from(content)  # fmt: skip
        if magic != _MAGIC or self.point_bytes != _POINT.size or self.tally_bytes < _TALLY.size:
            raise Damaged("not of this watcher's format")
        self.left = bool(left)
        self.knobs = list(zip(knobs[::2], knobs[1::2], strict=True))[: min(knob_count, _KNOBS)]


def parse(content: bytes, ended_s: float | None = None) -> HeapUse:
    """One process's file; arguments are those of :func:`read_folder`.

    Raises:
        Damaged: it is not whole, or not of this format.
    """
    head = _Head(content)
    try:
        counts, pending = _sum(content, head)
        points = [_POINT.unpack_from(content, head.points_at + number * _POINT.size) for number in range(head.count)]
    except struct.error as error:
        raise Damaged(f"not what the watcher writes: {error}") from error
    found = _use(head, counts, head.in_use + pending, points)
    if head.left or ended_s is None:
        return found
    return found.model_copy(update={"wall_s": max(found.wall_s, ended_s - head.begun_ns / 1e9)})


def _sum(content: bytes, head: _Head) -> tuple[list[int], int]:
    """Counts over all threads; and bytes in use that none of them has said."""
    sums, pending = [0] * (_COUNTS + 2 * _SIZES + _LIFETIMES), 0
    for number in range(head.claimed):
        *counts, unsaid, _, used = _TALLY.unpack_from(content, head.tallies_at + number * head.tally_bytes)
        if used:
            sums = [one + other for one, other in zip(sums, counts, strict=True)]
            pending += unsaid
    return sums, pending


def _use(head: _Head, counts: list[int], in_use: int, points: list[tuple[int, ...]]) -> HeapUse:
    (
        mallocs, callocs, frees, reallocs, moved, copied, small_steps, cleared, asked, looked, waited, waited_ns,
        sampled_frees, remote_frees, *rows,
    ) = counts  # fmt: skip
    sizes, held, lifetimes = rows[:_SIZES], rows[_SIZES : 2 * _SIZES], rows[2 * _SIZES :]
    live = head.end_live if head.left else in_use
    seen = [_point(each) for each in points]
    ended_s = max(0.0, (head.active_ns - head.begun_ns) / 1e9)
    if seen and head.left:
        seen[-1] = seen[-1].model_copy(update={"arenas": head.arenas})
    elif seen and ended_s > seen[-1].at_s:
        seen.append(seen[-1].model_copy(update={"at_s": ended_s, "live_kib": max(0, live >> 10)}))
    return HeapUse(
        wall_s=max(ended_s, seen[-1].at_s if seen else 0.0),
        complete=head.left,
        mallocs=mallocs,
        callocs=callocs,
        frees=frees,
        realloc=Realloc(calls=reallocs, moved=moved, copied_kib=copied >> 10, small_steps=small_steps),
        calloc_kib=cleared >> 10,
        asked_kib=asked >> 10,
        sizes=[
            Sizes(to_bytes=1 << bits, calls=calls, kib=size >> 10)
            for bits, (calls, size) in enumerate(zip(sizes, held, strict=True))
            if calls
        ],
        lifetimes={1 << bits: blocks for bits, blocks in enumerate(lifetimes) if blocks},
        peak_live_kib=max(0, head.most, live) >> 10,
        end_live_kib=max(0, live) >> 10,
        threads=max(1, head.most_threads),
        remote_frees=remote_frees,
        sampled_frees=sampled_frees,
        waited=waited,
        waited_s=waited_ns / 1e9,
        sampled_calls=looked,
        mallopts=head.knobs,
        points=seen,
        trimmed_kib=max(0, head.trimmed >> 10) if head.left and head.trimmed != _NOT_SAID else None,
    )


def _point(numbers: tuple[int, ...]) -> HeapPoint:
    at_ns, live, asked, held, free, top, mapped, resident = numbers
    return HeapPoint(
        at_s=at_ns / 1e9,
        live_kib=max(0, live >> 10),
        asked_kib=asked >> 10,
        held_kib=held >> 10,
        free_kib=free >> 10,
        top_kib=top >> 10,
        mapped_kib=mapped >> 10,
        rss_kib=None if resident < 0 else resident >> 10,
    )
