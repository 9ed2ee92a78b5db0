"""Takes trials on this machine, with the probes of :mod:`freestone.trials`."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Self

from freestone.analysis.rounds import Arm, Slot
from freestone.experiments.events import Event, HeapsSeen, NeverReady, ServerSeen, ToldNothing
from freestone.records.schema import PROGRAM, Asked, Configuration, Experiment, TrialRecord, Workload
from freestone.records.store import StoreError
from freestone.trials import (
    Identity,
    Moment,
    Rehearsal,
    StageFailure,
    can_count,
    permissions,
    placement,
    rehearse,
    run_stage,
    run_trial,
    shelf,
)
from freestone.trials.environment import in_force
from freestone.trials.named_files import NamedFiles, code, untouched

Around = Callable[[Configuration], AbstractContextManager[None]]
"""Sets what a configuration needs beside the program's environment for as long as it is entered."""


def environment_alone(configuration: Configuration) -> AbstractContextManager[None]:
    """Sets nothing.

    Raises:
        StoreError: the configuration needs more, and without it would be measured as another one.
    """
    if configuration.needs_conditions:
        raise StoreError(f"{configuration.name} needs settings of the kernel's, which 'freestone doctor' alone makes")
    return nullcontext()


class LocalTrials:
    """The trials of one experiment on this machine; a :class:`freestone.experiments.run.Measurement`.

    Captured output goes to a scratch folder that exists while the object is entered.
    """

    def __init__(
        self,
        experiment: Experiment,
        on_event: Callable[[Event], None] = lambda event: None,
        around: Around = environment_alone,
    ) -> None:
        self.experiment = experiment
        self.on_event = on_event
        self._around = around
        self._scratch: Path | None = None
        self._rehearsals: dict[Arm, Rehearsal] = {}
        self._asked: dict[str, Asked | None] = {}
        self._ready: set[str] = set()
        self._files = NamedFiles()

    def __enter__(self) -> Self:
        try:
            shelf.clear(Path(tempfile.gettempdir()), now_s=time.time())
            self._scratch = Path(tempfile.mkdtemp(prefix=f"freestone-{os.getpid()}-"))
        except OSError as error:
            raise StoreError(f"no scratch folder for captured output: {error.strerror or error}") from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None

    @property
    def scratch(self) -> Path:
        """The scratch folder.

        Raises:
            RuntimeError: the object is not entered.
        """
        if self._scratch is None:
            raise RuntimeError("LocalTrials is a context manager; enter it first")
        return self._scratch

    def rehearsals(self, arms: Sequence[Arm]) -> list[Arm]:
        """Which of the arms to rehearse.

        All of them where the kernel refuses a census inside a timed trial, since a rehearsal's is all there is. Else
        one for each workload, so that the first trial does not pay for reading its files.
        """
        if not permissions().perf:
            return list(arms)
        return list(dict(reversed(arms)).items())

    def rehearse(self, workload: Workload, configuration: Configuration) -> HeapsSeen | NeverReady | ToldNothing:
        """Run once without a clock, and say who serves the program's memory.

        Where trials have a census of their own, the allocator is of no matter here and malloc is counted in its place.
        A server that does not get ready is tried again under the baseline, warm and as it would be measured: its
        failure there alone says that nothing can be measured. So is one whose load tells no figures, where that was
        seen of another allocator: who serves a server badly may be why.
        """
        counting = permissions().perf and can_count()
        rehearsal = self._rehearsed(workload, configuration, counting=counting)
        if counting:
            self._asked[workload.name] = rehearsal.asked
        else:
            self._rehearsals[workload.name, configuration.name] = rehearsal
        if rehearsal.never_ready and workload.name not in self._ready:
            again = self._rehearsed(workload, self._baseline())
            if again.never_ready:
                return NeverReady(workload.name, again.reason or "")
        if rehearsal.told_nothing and workload.name not in self._ready:
            plain = not counting and configuration.name == self.experiment.baseline
            again = rehearsal if plain else self._rehearsed(workload, self._baseline())
            if again.told_nothing:
                return ToldNothing(workload.name, again.reason or "")
        self._ready.add(workload.name)
        return HeapsSeen(workload.name, tuple(rehearsal.proof.own_heaps), rehearsal.asked)

    def _rehearsed(self, workload: Workload, configuration: Configuration, *, counting: bool = False) -> Rehearsal:
        with self._around(configuration):
            return rehearse(
                workload, configuration, timeout_s=self.experiment.timeout_s, scratch=self.scratch, counting=counting
            )

    def _baseline(self) -> Configuration:
        return next(each for each in self.experiment.configurations if each.name == self.experiment.baseline)

    def warm_up(self, workload: Workload, configuration: Configuration) -> None:
        """Run once as a trial is run, and keep nothing of it."""
        self._run(workload.model_copy(update={"rest_s": None}), configuration, Identity(experiment=self.experiment.id))

    def set_up(self, workload: Workload) -> StageFailure | None:
        """Do what comes once before everything else."""
        return self._stage("setup", workload.stages.setup, workload)

    def clean_up(self, workload: Workload) -> StageFailure | None:
        """Do what comes once after everything else."""
        return self._stage("cleanup", workload.stages.cleanup, workload)

    def _stage(self, title: str, command: str | None, workload: Workload) -> StageFailure | None:
        return run_stage(title, command, workload, timeout_s=self.experiment.timeout_s, scratch=self.scratch)

    def trial(self, workload: Workload, configuration: Configuration, slot: Slot) -> TrialRecord:
        """Run once under the clock."""
        identity = Identity(experiment=self.experiment.id, round=slot.round, position=slot.position, repeat=slot.repeat)
        return self._run(
            workload,
            configuration,
            identity,
            lambda moment: self.on_event(ServerSeen(slot, self.experiment.rounds, moment)),
        )

    def _run(
        self,
        workload: Workload,
        configuration: Configuration,
        identity: Identity,
        watch: Callable[[Moment], None] = lambda moment: None,
    ) -> TrialRecord:
        environment = in_force(workload, configuration, os.environ)
        # The library too: one that is built anew meanwhile is another one, whatever it says of itself.
        served = [file for file in {configuration.allocator.file, *configuration.allocator.preload} if file]
        before = self._files.contents(workload, environment, served)
        placement.renew(path for path, content in before.items() if content.startswith(PROGRAM))
        with self._around(configuration):
            record = run_trial(
                workload,
                configuration,
                identity=identity,
                timeout_s=self.experiment.timeout_s,
                scratch=self.scratch,
                rehearsal=self._rehearsals.get((workload.name, configuration.name)),
                watch=watch,
                asked=self._asked.get(workload.name),
            )
        after = self._files.contents(workload, environment, served)
        changed = [path for path in code(workload, before) if after.get(path) != before[path]]
        if record.status == "ok" and changed:
            reason = f"{changed[0]} was changed while it ran"
            record = record.model_copy(update={"status": "failed", "reason": reason})
        return record.model_copy(update={"files": untouched(before, after)})
