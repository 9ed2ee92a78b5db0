"""What the terminal can do: width, colour, characters. Shared by the verbs that print for people."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TextIO


def say(line: str) -> None:
    """A line on standard error, which standard output does not wait for."""
    print(f"freestone: {line}", file=sys.stderr, flush=True)


def width() -> int:
    """Columns to print in; COLUMNS is honoured, 100 where there is no terminal to ask."""
    return min(10_000, max(20, shutil.get_terminal_size((100, 24)).columns))


def is_terminal(stream: TextIO) -> bool:
    """Whether a person is looking."""
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def has_colour(stream: TextIO) -> bool:
    """Whether to colour: a terminal that is not dumb, and no NO_COLOR (https://no-color.org)."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def is_ascii(stream: TextIO) -> bool:
    """Whether the stream has nothing but ASCII."""
    try:
        "×≈–".encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return True
    return False
