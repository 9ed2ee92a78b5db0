"""Reads what the watcher of the heap wrote: a file for each process. Pure but for the folder's files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from freestone.doctor.observations import HeapPoint, HeapUse, Realloc, Sizes

WATCHER: Final = "libfreestone-heapwatch.so"
FOLDER: Final = "FREESTONE_HEAPWATCH"
"""The variable that names the folder for its files."""

_FORMAT: Final = "1"


class Damaged(ValueError):
    """A file is not what the watcher writes; the message is one line."""


def read_folder(folder: Path) -> HeapUse | None:
    """Of all processes that wrote, the one that asked for most; None where none did, or none whole."""
    found = []
    for file in sorted(folder.iterdir()):
        try:
            found.append(parse(file.read_text(encoding="utf-8", errors="replace")))
        except (OSError, Damaged):
            continue  # a process that was ended while it wrote
    return max(found, key=lambda use: (use.asked_kib, use.mallocs), default=None)


def parse(text: str) -> HeapUse:
    """One process's file.

    Raises:
        Damaged: it is not whole, or not of this format.
    """
    lines = [line.split() for line in text.splitlines()]
    if not lines or lines[0][:2] != ["heapwatch", _FORMAT] or lines[-1] != ["end"]:
        raise Damaged("not a whole file of the watcher's")
    try:
        return _use(lines[1:-1])
    except (KeyError, IndexError, ValueError) as error:
        raise Damaged(f"not what the watcher writes: {error}") from error


def _use(lines: Iterable[list[str]]) -> HeapUse:
    counts: dict[str, list[int]] = {}
    sizes: list[Sizes] = []
    lifetimes: dict[int, int] = {}
    knobs: list[tuple[int, int]] = []
    points: list[HeapPoint] = []
    for name, *words in lines:
        numbers = [int(word) for word in words]
        match name:
            case "size":
                bits, calls, size = numbers
                sizes.append(Sizes(to_bytes=1 << bits, calls=calls, kib=size >> 10))
            case "lifetime":
                bits, blocks = numbers
                lifetimes[1 << bits] = blocks
            case "mallopt":
                knobs.append((numbers[0], numbers[1]))
            case "point":
                points.append(_point(numbers))
            case _:
                counts[name] = numbers
    in_use, peak = counts["in_use"]
    arenas, (trimmed,) = counts["arenas"][0], counts["trimmed"]
    if points:
        points[-1] = points[-1].model_copy(update={"arenas": arenas})
    return HeapUse(
        wall_s=counts["wall"][0] / 1e9,
        mallocs=counts["mallocs"][0],
        callocs=counts["callocs"][0],
        frees=counts["frees"][0],
        realloc=Realloc(
            calls=counts["reallocs"][0],
            moved=counts["moved"][0],
            copied_kib=counts["copied"][0] >> 10,
            small_steps=counts["small_steps"][0],
        ),
        calloc_kib=counts["cleared"][0] >> 10,
        asked_kib=counts["asked"][0] >> 10,
        sizes=sizes,
        lifetimes=lifetimes,
        peak_live_kib=peak >> 10,
        end_live_kib=max(0, in_use >> 10),
        threads=max(1, counts["threads"][0]),
        remote_frees=counts["remote_frees"][0],
        sampled_frees=counts["sampled_frees"][0],
        waited=counts["waited"][0],
        waited_s=counts["waited_ns"][0] / 1e9,
        sampled_calls=counts["looked"][0],
        mallopts=knobs,
        points=points,
        trimmed_kib=None if trimmed < 0 and trimmed == -1 else max(0, trimmed >> 10),
    )


def _point(numbers: list[int]) -> HeapPoint:
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
