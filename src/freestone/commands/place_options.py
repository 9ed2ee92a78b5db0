"""Options of where something is measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


@Parameter(name="*")
@dataclass(frozen=True)
class PlaceOptions:
    """Here and now into a new folder, unless it was asked for otherwise."""

    on: Annotated[
        list[str] | None,
        Parameter(
            negative="",
            help="Measure at other places: local, ssh:HOST,..., slurm:FEATURE,..., dask:ADDRESS#RESOURCE,... "
            "May be given again. Each has a results folder of its own.",
        ),
    ] = None
    into: Annotated[
        Path | None,
        Parameter(
            help="The results folder itself. What it does not hold yet is measured, so the same line may be given "
            "again. Allocators that are not here are left out: status 4."
        ),
    ] = None


HERE = PlaceOptions()
"""One machine, this one."""
