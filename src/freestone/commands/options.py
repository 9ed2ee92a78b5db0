"""What ``compare`` and ``bench`` understand alike, as types of their parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

Allocators = Annotated[
    list[str] | None,
    Parameter(
        name=["--allocators", "-a"],
        negative="",
        help="Names or library paths, with commas between. Default: all that are here.",
    ),
]

TimeBudget = Annotated[
    float | None, Parameter(help="Seconds. No round is begun that would not fit; the first always is.")
]

Timeout = Annotated[float | None, Parameter(help="Seconds after which a run is ended and counts as timed out.")]

Seed = Annotated[int | None, Parameter(help="Of the random order of runs. Default: drawn, and recorded.")]

Results = Annotated[Path, Parameter(help="The folder that holds all results.")]

Resume = Annotated[
    Path | None, Parameter(help="A results folder: measure what is missing there, with the settings it has.")
]
