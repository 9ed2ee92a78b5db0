"""Durations as people type them: ``90``, ``90s``, ``1.5m``, ``1h``, ``1m30s``. Seconds inside."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter, Token

_UNITS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(rf"(\d+(?:\.\d*)?|\.\d+) ?({'|'.join(sorted(_UNITS, key=len, reverse=True))})")


def seconds(text: str) -> float:
    """A duration in seconds; of a number alone that number, also where it is none that anything can last.

    Raises:
        ValueError: it is no duration.
    """
    words = text.strip().lower()
    try:
        return float(words)
    except ValueError:
        pass
    rest, total = words, 0.0
    while found := _PART.match(rest):
        total += float(found[1]) * _UNITS[found[2]]
        rest = rest[found.end() :].lstrip()
    if rest or not words:
        raise ValueError(f"seconds, or as in 90s, 2m, 1h30m, not '{text}'")
    return total


def _read(_: object, tokens: Sequence[Token]) -> float:
    return seconds(tokens[0].value)


def _read_whole(_: object, tokens: Sequence[Token]) -> int:
    found = seconds(tokens[0].value)
    if not found.is_integer():
        raise ValueError(f"a whole number of seconds, not '{tokens[0].value}'")
    return int(found)


AS_TYPED = Parameter(converter=_read, allow_leading_hyphen=True)
"""Of a parameter that is a number of seconds."""

Seconds = Annotated[float | None, AS_TYPED]
WholeSeconds = Annotated[int | None, Parameter(converter=_read_whole, allow_leading_hyphen=True)]
