"""Options of where something is measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from freestone.experiments.plan import PlanError


@Parameter(name="*")
@dataclass(frozen=True)
class PlaceOptions:
    """Here and now into a new folder, unless it was asked for otherwise."""

    on: Annotated[
        list[str] | None,
        Parameter(
            negative="",
            help="Measure on other machines: local, ssh:HOST,..., slurm:FEATURE,..., dask:ADDRESS#RESOURCE,... "
            "May be given again. Each has a results folder of its own.",
        ),
    ] = None
    into: Annotated[
        Path | None,
        Parameter(
            help="The results folder itself. Whatever it lacks is measured, so the same line may be given again. "
            "Allocators that are not here are left out: status 4."
        ),
    ] = None

    def require_one(self, resume: Path | None, *, report: bool = True) -> None:
        """Raise PlanError if two options name the results folder, or one would be dropped.

        Args:
            resume: the folder to resume.
            report: whether a report is asked for.
        """
        if self.into is not None and self.on is not None:
            raise PlanError("--on makes a results folder for each place, and --into names one: leave one of them out")
        if self.into is not None and resume is not None:
            raise PlanError("--into and --resume both name the results folder: leave one of them out")
        if self.on is not None and not report:
            raise PlanError("--no-report: a report shows the results of several places; leave it out")


HERE = PlaceOptions()
"""One machine, this one."""
