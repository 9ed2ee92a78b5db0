"""What several verbs understand alike, as types of their parameters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, Token

from freestone.commands.durations import Budget, Limit


def _whole(_: object, tokens: Sequence[Token]) -> int:
    """A whole number as it stands: 1.5 must not become 2.

    Raises:
        ValueError: it is none.
    """
    text = tokens[0].value.strip()
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        raise ValueError(f"a whole number, not '{text}'")
    return int(text)


Whole = Annotated[int | None, Parameter(converter=_whole)]
"""A whole number of something."""

Allocators = Annotated[
    list[str] | None,
    Parameter(
        name=["--allocators", "-a"],
        negative="",
        help="Names or library paths, each with settings as in glibc:MALLOC_ARENA_MAX=2, with commas between. "
        "Default: all that are here.",
    ),
]

TimeBudget = Annotated[
    Budget,
    Parameter(help="Limit, or as in 90s, 2m, 1h. No round is begun that would not fit; the first always is."),
]

Timeout = Annotated[Limit, Parameter(help="Seconds after which a run is ended and counts as timed out.")]

Seed = Annotated[Whole, Parameter(help="Of the random order of runs. Default: drawn, and recorded.")]

Results = Annotated[Path, Parameter(help="The folder that holds all results.")]

Resume = Annotated[
    Path | None, Parameter(help="A results folder: measure what is missing there, with the settings it has.")
]
