"""What a program says of itself: the numbers of the line of JSON that ends its output."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeGuard

LONGEST_BYTES = 1 << 20
"""A line that is longer is no list of figures."""


def read(stdout: Path) -> tuple[dict[str, float] | None, str | None]:
    """The figures of a program's output, or why there are none, in one line.

    The last line counts, so that a program may say other things before it. Numbers are figures, and so is the last
    number of a list, which is where a course of figures ends, and each number of an object: ``{"malloc_ns": {"8": 5}}``
    is ``malloc_ns/8``. Words, ``null`` and ``true`` are none. ``seconds``, the time of what the program measures, has
    to be among them.
    """
    line = _last_line(stdout)
    if not line:
        return None, "it printed no line of JSON"
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):  # a line that is not UTF-8 is a ValueError too
        return None, f"the last line it printed is not JSON: {_shown(line)}"
    if not isinstance(said, dict):
        return None, f"the last line it printed is no JSON object: {_shown(line)}"
    figures = {name: float(value) for name, value in _spread(said).items() if _is_figure(value)}
    seconds = figures.get("seconds")
    if seconds is None or seconds <= 0:
        return None, f"its line of JSON has no 'seconds' above 0: {_shown(line)}"
    return figures, None


def _spread(said: Mapping[str, object]) -> dict[str, object]:
    """The entries of an object, those of objects in it under both names; the last of each list."""
    flat: dict[str, object] = {}
    for name, value in said.items():
        inner = value.items() if isinstance(value, dict) else ()
        flat |= {f"{name}/{key}": _end(each) for key, each in inner} if inner else {name: _end(value)}
    return flat


def _end(value: object) -> object:
    return value[-1] if isinstance(value, list) and value else value


def _is_figure(value: object) -> TypeGuard[int | float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float can hold
        return False


def _last_line(path: Path) -> bytes:
    if not path.exists():
        return b""
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - LONGEST_BYTES))
        lines = file.read(LONGEST_BYTES).split(b"\n")
    return next((line for line in reversed(lines) if line.strip()), b"")


def _shown(line: bytes) -> str:
    text = " ".join(line[:200].decode("utf-8", "replace").split())
    return text[:80] + ("..." if len(text) > 80 or len(line) > 200 else "")
