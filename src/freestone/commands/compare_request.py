"""What was asked of ``freestone compare``: its workloads, and whether an earlier comparison can go on."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from freestone.commands import measurement, program
from freestone.commands.acceptance import Acceptance
from freestone.commands.program_options import ProgramOptions
from freestone.commands.service_options import ServiceOptions
from freestone.commands.stage_options import StageOptions
from freestone.experiments.input_file import may_make
from freestone.experiments.plan import PlanError
from freestone.records.schema import Experiment, Workload


@dataclass(frozen=True)
class CompareRequest:
    """What was asked for, but for the allocators and how much is measured."""

    words: Sequence[str]
    name: str | None
    env: Sequence[str]
    keep_env: bool
    idle: int | None
    idle_rounds: int | None
    programs: ProgramOptions
    stages: StageOptions
    acceptance: Acceptance
    service: ServiceOptions

    def given(self) -> dict[str, object]:
        """Option -> its value, None where it was not given."""
        return {
            "--name": self.name,
            "--env": self.env or None,
            "--keep-env": self.keep_env or None,
            "--idle": self.idle,
            "--idle-rounds": self.idle_rounds,
            **self.programs.given(),
            **self.stages.given(),
            **self.acceptance.given(),
            **self.service.given(),
        }

    def called(self) -> str:
        """What an order of it is called, where its programs may be somewhere else."""
        return self.name or (Path(self.words[0]).name if self.words else "commands")

    def workloads(self, tell: Callable[[str], None]) -> list[Workload]:
        """Every program with everything around it, once for each point of the scans.

        Args:
            tell: told in a line what is worth knowing before anything runs.

        Raises:
            PlanError, Stop: it cannot be run as it was asked for.
        """
        if not self.programs.shell:
            program.require_last(self.words)
        environment = program.settings(self.env)
        whole = [
            self._around(
                each.model_copy(
                    update={
                        "environment": environment,
                        "keep_environment": self.keep_env,
                        "directory": os.getcwd(),
                    }
                )
            )
            for each in self.programs.programs(self.words, self.name)
        ]
        points = self.programs.scanned(whole, tell)
        for each in points:
            if not may_make(each):
                program.require(each.command, {**os.environ, **each.environment})
        return points

    def resumed(self, folder: Path, given: Sequence[str]) -> Experiment:
        """The experiment of a folder, fit to go on.

        Args:
            given: options that would make it another experiment.

        Raises:
            PlanError, StoreError, Stop: as :func:`freestone.commands.measurement.resumed`.
        """
        experiment = measurement.resumed(folder, given)
        measured = [each.command for each in experiment.workloads]
        if self.words and [list(self.words)] != measured:
            several = f"{len(measured)} commands" if len(measured) > 1 else f"another command ({' '.join(measured[0])})"
            raise PlanError(f"cannot resume {folder}: it measured {several}; leave the program out")
        return experiment

    def _around(self, workload: Workload) -> Workload:
        if workload.shell and any(value is not None for value in self.service.given().values()):
            raise PlanError("a server is started without --shell: it has to hear the signal that stops it")
        served = self.service.applied(self.stages.applied(self.acceptance.applied(workload)))
        return _kept(served, self.idle, self.idle_rounds)


def _kept(workload: Workload, idle_s: int | None, rounds: int | None) -> Workload:
    """The workload with its processes kept at their end for so long.

    Raises:
        PlanError: no such number of rounds, or a server.
    """
    if rounds is not None and (idle_s is None or rounds < 1):
        raise PlanError(f"--idle-rounds is a number of rounds from 1 on, beside --idle, not {rounds}")
    if idle_s is not None and workload.service is not None:
        raise PlanError("--idle is for programs: a server's memory after its load is taken without it")
    return workload.model_copy(update={"rest_s": idle_s, "idle_rounds": rounds})


def called(workloads: Sequence[Workload]) -> str:
    """What an experiment of these is called, where nobody has said."""
    return "-".join(dict.fromkeys(each.series or each.name for each in workloads))
