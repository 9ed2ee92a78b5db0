"""Where in a program calls about memory come from: the stacks that ``strace -k`` writes behind each call. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Final

from freestone.doctor.observations import CallSite

STACKS: Final = ("-k",)
"""Options of strace that write them."""

MOST_FRAMES: Final = 8
TOLD: Final = 3
"""Sites that are told of each call; and frames by which two sites are told apart."""

_FRAME: Final = re.compile(r"^ > (?P<object>.*?)\((?P<function>.*?)(?:\+0x[0-9a-f]+)?\)(?: \[(?P<at>0x[0-9a-f]+)\])?$")
_NAMES: Final = re.compile(r"^\d+\s+\d+\.\d+\s+(?:<\.\.\. )?(?P<name>\w+)(?:\(| resumed>)")
_OWN: Final = "libfreestone-"
"""The lab's probes are no part of the program."""
_C_LIBRARY: Final = re.compile(r"(?:libc[.-]|ld-|libpthread[.-]|ld\.so)")


def read(lines: Iterable[str], names: Sequence[str]) -> Mapping[str, list[CallSite]]:
    """The most frequent sites of each call, at most :data:`TOLD`; calls of the dynamic linker alone have none.

    Args:
        lines: of the log.
        names: of the calls that count.
    """
    counts: dict[str, Counter[tuple[str, ...]]] = {}
    whole: dict[tuple[str, ...], list[str]] = {}
    name, stack = "", list[tuple[str, str, str]]()

    def close() -> None:
        frames = _of_program(stack)
        own = any(file.startswith(_OWN) for file, _, _ in stack)
        if name in names and frames and not own:
            key = tuple(frames[:TOLD])
            whole.setdefault(key, frames)
            counts.setdefault(name, Counter())[key] += 1

    for line in lines:
        if frame := _FRAME.match(line.rstrip("\n")):
            stack.append((PurePath(frame["object"]).name, frame["function"], frame["at"] or ""))
        elif call := _NAMES.match(line):
            close()
            name, stack = call["name"], []
    close()
    return {
        each: [CallSite(frames=whole[key], calls=calls) for key, calls in found.most_common(TOLD)]
        for each, found in counts.items()
    }


def totals(lines: Iterable[str], names: Sequence[str]) -> Counter[str]:
    """How often each call was made in such a log."""
    found = (call["name"] for line in lines if (call := _NAMES.match(line)) and "unfinished" not in line)
    return Counter(name for name in found if name in names)


def _of_program(stack: Sequence[tuple[str, str, str]]) -> list[str]:
    """Frames from the caller of the C library outwards, without what comes before main."""
    frames: list[str] = []
    for file, function, at in stack:
        if _C_LIBRARY.match(file):
            if frames:
                break
            continue
        frames.append(f"{function} ({file})" if function else f"{file}+{at}")
    return frames[:MOST_FRAMES]
