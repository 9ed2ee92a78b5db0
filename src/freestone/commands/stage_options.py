"""Options of what stands around the runs of a program: commands, warm-up runs, its standard input."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from freestone.commands.options import Whole
from freestone.experiments.plan import PlanError
from freestone.records.schema import Input, Stages, Workload

MOST_WARM_UPS = 1000


@Parameter(name="*")
@dataclass(frozen=True)
class StageOptions:
    """What was asked for. Without any of it, the program is run and nothing else."""

    setup: Annotated[
        str | None, Parameter(help="A shell command that is run once, before anything of the program.")
    ] = None
    prepare: Annotated[
        str | None, Parameter(help="A shell command before each run, off the clock, as in 'rm -rf build'.")
    ] = None
    conclude: Annotated[str | None, Parameter(help="A shell command after each run, off the clock.")] = None
    cleanup: Annotated[
        str | None, Parameter(help="A shell command that is run once at the end, also after Ctrl-C or a failure.")
    ] = None
    warmup: Annotated[
        Whole, Parameter(help="Untimed runs under each allocator before the first round. Default: none.")
    ] = None
    input: Annotated[
        Path | None, Parameter(help="A file that each run reads as its standard input. Default: an empty one.")
    ] = None

    def given(self) -> dict[str, object]:
        """Option -> its value, None where it was not given."""
        return {
            "--setup": self.setup,
            "--prepare": self.prepare,
            "--conclude": self.conclude,
            "--cleanup": self.cleanup,
            "--warmup": self.warmup,
            "--input": self.input,
        }

    def applied(self, workload: Workload) -> Workload:
        """The workload with this around it; its input is looked at when the experiment is planned.

        Raises:
            PlanError: one of them is nothing that can be done.
        """
        commands = {"setup": self.setup, "prepare": self.prepare, "conclude": self.conclude, "cleanup": self.cleanup}
        for name, command in commands.items():
            if command is not None and (not command.strip() or "\0" in command):
                raise PlanError(f"--{name} takes a shell command, as in --{name} 'make clean'")
        if self.warmup is not None and not 0 <= self.warmup <= MOST_WARM_UPS:
            raise PlanError(f"--warmup takes a number of runs from 0 to {MOST_WARM_UPS}, not {self.warmup}")
        return workload.model_copy(
            update={
                "stages": Stages(**commands),
                "warmup": self.warmup or 0,
                "input": None if self.input is None else Input(file=_from_anywhere(self.input)),
            }
        )


def _from_anywhere(file: Path) -> str:
    """The path as another process finds it: ``/dev/stdin`` is another file there."""
    path = os.path.abspath(file)
    real = os.path.realpath(path) if path.startswith(("/dev/", "/proc/")) else path
    return real if os.path.exists(real) else path  # a pipe has no other name


NO_STAGES = StageOptions()
