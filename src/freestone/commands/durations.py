"""Durations as people type them: ``90``, ``90s``, ``1.5m``, ``1h``, ``1m30s``. Seconds inside."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from cyclopts import Parameter, Token

from freestone.suites.expansion import IDLE_MOST_S

_UNITS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(rf"(\d+(?:\.\d*)?|\.\d+) ?({'|'.join(sorted(_UNITS, key=len, reverse=True))})")

INSTANT_S: Final = 0.001
"""The least that a limit of time is: a shorter one would be none by the clocks that watch it."""

WEEK_S: Final = 7 * 86400.0
"""The most that one run is given: what the kernel waits for in one call is told in milliseconds, 24 days at most."""

YEAR_S: Final = 365 * 86400.0


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


@dataclass(frozen=True)
class Between:
    """Reads the duration that an option takes, as a converter of cyclopts; both ends are allowed.

    ``whole`` is for an option that takes whole seconds alone.
    """

    least_s: float
    most_s: float
    whole: bool = False

    def __call__(self, _: object, tokens: Sequence[Token]) -> float | int:
        """The duration in seconds.

        Raises:
            ValueError: it is none, or none that this option takes.
        """
        text = tokens[0].value
        found = seconds(text)
        # NaN is not between anything.
        if not self.least_s <= found <= self.most_s:
            raise ValueError(f"it takes from {_told(self.least_s)} to {_told(self.most_s)}, not '{text}'")
        if self.whole and not found.is_integer():
            raise ValueError(f"a whole number of seconds, not '{text}'")
        return int(found) if self.whole else found


def _told(duration_s: float) -> str:
    """A duration in the largest unit that divides it."""
    units = (unit for unit in ("d", "h", "m", "s", "ms") if (duration_s / _UNITS[unit]).is_integer())
    unit = next(units, "s")
    return f"{duration_s / _UNITS[unit]:g} {unit}"


def between(least_s: float, most_s: float, *, whole: bool = False) -> Parameter:
    """Of a parameter that is a number of seconds: the least and the most that it takes."""
    return Parameter(converter=Between(least_s, most_s, whole), allow_leading_hyphen=True)


LIMIT: Final = between(INSTANT_S, WEEK_S)
"""Of a time after which something is given up."""

BUDGET: Final = between(INSTANT_S, YEAR_S)
"""Of a time that many runs have together."""

Limit = Annotated[float | None, LIMIT]
Budget = Annotated[float | None, BUDGET]
Look = Annotated[float | None, between(0.1, 86400)]
"""Of a time for which a process is looked at, some ten times."""

Rest = Annotated[int | None, between(1, IDLE_MOST_S, whole=True)]
"""A whole number of seconds for which a program is kept."""
