"""Which version a library is, asked of whoever knows: its package, its own text, its own function, its file name."""

from __future__ import annotations

import mmap
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from freestone.allocators.packages import Package

_FILE_DIGITS = re.compile(r"\.so\.(\d[\d.]*)$")
_ASK = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1])[sys.argv[2]]())"


def version_of(file: Path, sources: Iterable[str], package: Package | None) -> str | None:
    """The first answer among the sources of a catalogue entry, or None when none of them knows.

    Args:
        file: real path of the library.
        sources: as in the catalogue: ``package``, ``text:REGEX``, ``call:FUNCTION``, ``file``.
        package: the package that owns the file, if any.
    """
    for source in sources:
        kind, _, argument = source.partition(":")
        answer: str | None = None
        if kind == "package":
            answer = package.upstream_version if package else None
        elif kind == "text":
            answer = _from_text(file, argument)
        elif kind == "call":
            answer = _from_call(file, argument)
        elif kind == "file":
            match = _FILE_DIGITS.search(file.name)
            answer = match[1] if match else None
        if answer:
            return answer
    return None


def digits_to_version(number: int) -> str | None:
    """One integer as people write it: 209 is 2.0.9, 30102 is 3.1.2; None for what cannot be a version."""
    if 100 <= number <= 999:
        return f"{number // 100}.{number // 10 % 10}.{number % 10}"
    if 10000 <= number <= 999999:
        return f"{number // 10000}.{number // 100 % 100}.{number % 100}"
    return None


def _from_text(file: Path, pattern: str) -> str | None:
    try:
        with open(file, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            match = re.search(pattern.encode(), content)
            return match[1].decode("ascii", "replace") if match and match[1] else None
    except (OSError, ValueError):
        return None


def _from_call(file: Path, function: str) -> str | None:
    # In a process of its own: loading an allocator into this one would leave its memory and its handlers behind.
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _ASK, str(file), function],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
        return digits_to_version(int(done.stdout)) if done.returncode == 0 else None
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return None
