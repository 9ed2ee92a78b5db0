"""Runs an experiment: trial by trial in the order of the schedule, each record on the disk before the next begins."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Collection, Sequence
from enum import Enum
from pathlib import Path
from typing import Protocol

import freestone
from freestone.analysis import racing
from freestone.analysis.comparable import machines_differ
from freestone.analysis.rounds import Arm, Slot, plan_round
from freestone.analysis.same_environment import environments_differ
from freestone.experiments import schedule
from freestone.experiments.events import (
    BudgetSpent,
    Event,
    GivenUp,
    HeapsSeen,
    NeverReady,
    RehearsalStarted,
    StageFailed,
    StageStarted,
    ToldNothing,
    TrialEnded,
    TrialStarted,
    WarmUpStarted,
)
from freestone.experiments.interruption import Interruption, TrialBrokenOff
from freestone.experiments.local import Around, LocalTrials, environment_alone
from freestone.records.schema import Configuration, Environment, Experiment, Machine, TrialRecord, Workload
from freestone.records.store import StoreError, TrialLog, read_trials
from freestone.trials import StageFailure

TRIAL_OVERHEAD_S = 0.1
"""What a trial costs beside its wall time until the experiment has measured it: start, proof, syncing the record."""


class Measurement(Protocol):
    """How trials are taken. :class:`freestone.experiments.local.LocalTrials` is the real one; tests have their own."""

    def rehearsals(self, arms: Sequence[Arm]) -> list[Arm]:
        """Which of these are worth a rehearsal before the first round."""

    def rehearse(self, workload: Workload, configuration: Configuration) -> HeapsSeen | NeverReady | ToldNothing | None:
        """Run once without a clock before the first round, and say who serves the program's memory, if that was seen.

        Of a server it says where it does not get ready, or its load tells nothing.

        May raise nothing for what the program does.
        """

    def warm_up(self, workload: Workload, configuration: Configuration) -> None:
        """Run once as a trial is run, and keep nothing of it. May raise nothing for what the program does."""

    def set_up(self, workload: Workload) -> StageFailure | None:
        """Do what a workload has for once before everything else; why that failed."""

    def clean_up(self, workload: Workload) -> StageFailure | None:
        """Do what a workload has for once after everything else; why that failed."""

    def trial(self, workload: Workload, configuration: Configuration, slot: Slot) -> TrialRecord:
        """Run once under the clock and say what it cost. May raise nothing for what the program does."""


class Outcome(Enum):
    """How an experiment ended."""

    COMPLETE = "complete"
    BUDGET = "time budget spent"
    HOPELESS = "no configuration had a good trial"
    INTERRUPTED = "interrupted"


class ExperimentMismatch(StoreError):
    """Records in the folder belong to something else than the experiment."""


def run(
    experiment: Experiment,
    folder: Path,
    *,
    left_out: Collection[str] = (),
    on_event: Callable[[Event], None] = lambda event: None,
    stop: Interruption | None = None,
    changed: Callable[[], str | None] = lambda: None,
    around: Around = environment_alone,
    measurement: Measurement | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Run what the folder's trials file does not hold yet, and append each record to it.

    A round is begun only if it is expected to fit the time budget; the first always is. The budget counts what earlier
    sessions of a resumed experiment have measured.

    Args:
        experiment: what to run; its head is in the folder already.
        folder: the results folder.
        left_out: workloads that are not run now; what the folder holds of them stays, and a later session goes on.
        on_event: told what happens; called between trials, never while a clock runs, but for a server's moments.
        stop: asked between trials whether to stop, and able to break one off.
        changed: asked after each trial what is not as it was when the experiment was begun, in one line; then the trial
            failed.
        around: sets what a configuration needs beside the program's environment, for each of its runs.
        measurement: how trials are taken; by default on this machine.
        clock: seconds, for budget and estimate only.

    Raises:
        StoreError: a record could not be written; earlier ones are as they were.
        LauncherBroken, NativePartMissing: the lab's own parts do not work.
    """
    stop = stop or Interruption()
    # The log first: what another process has measured until it let go of it is not measured again.
    with TrialLog(folder) as log, contextlib.ExitStack() as stack:
        records = read_trials(folder).records
        foreign = {record.experiment for record in records} - {experiment.id}
        if foreign:
            raise ExperimentMismatch(f"{folder} holds trials of another experiment ({', '.join(sorted(foreign))})")
        taking = measurement or stack.enter_context(LocalTrials(experiment, on_event, around))
        return _Session(experiment, frozenset(left_out), taking, log, records, on_event, stop, changed, clock).run()


class _Session:
    """One uninterrupted stretch of an experiment."""

    def __init__(
        self,
        experiment: Experiment,
        left_out: frozenset[str],
        measurement: Measurement,
        log: TrialLog,
        records: list[TrialRecord],
        on_event: Callable[[Event], None],
        stop: Interruption,
        changed: Callable[[], str | None],
        clock: Callable[[], float],
    ) -> None:
        self.experiment = experiment
        self.left_out = left_out
        self.measurement = measurement
        self.log = log
        self.records = records
        self.on_event = on_event
        self.stop = stop
        self.changed = changed
        self.clock = clock
        self.workloads = {workload.name: workload for workload in experiment.workloads}
        self.configurations = {configuration.name: configuration for configuration in experiment.configurations}
        self.began = clock()
        self.earlier_s = math.fsum(schedule.elapsed_s(record) + TRIAL_OVERHEAD_S for record in records)
        self.taken = 0
        self.overhead_s = 0.0
        self._begun: list[Workload] = []
        self.out: set[Arm] = set()
        self._known: tuple[int, set[Arm], schedule.Costs | None] | None = None

    def run(self) -> Outcome:
        experiment = self.experiment
        self._look()
        todo = [number for number in range(experiment.rounds) if self._missing(number)]
        if not todo:
            return self._end()
        try:
            with self.stop.breakable():
                self._begin()
                self._rehearse(todo[0])
                self._warm_up(todo[0])
            if not self.workloads.keys() - self.left_out:
                return Outcome.HOPELESS
            for number in todo:
                if number % racing.LOOK_EVERY == 0:
                    self._look()
                if not self._missing(number):
                    continue  # all that it had are out
                if self._is_hopeless():
                    return Outcome.HOPELESS
                begun = any(record.round == number for record in self.records)
                if not begun and not self._fits(number):
                    self.on_event(BudgetSpent(number))
                    return Outcome.BUDGET
                for slot in self._missing(number):
                    if self.stop():
                        return Outcome.INTERRUPTED
                    if self._is_run(slot.workload, slot.configuration):
                        self._take(slot)
        except KeyboardInterrupt:
            return Outcome.INTERRUPTED
        finally:
            self._clean_up()
        return self._end()

    def _begin(self) -> None:
        """Set up every workload of which anything is to be run; one that cannot be is left out of this session."""
        left = schedule.unfinished(self.experiment, self.records)
        for workload in self.experiment.workloads:
            if workload.name not in left or workload.name in self.left_out:
                continue
            self._begun.append(workload)
            if workload.stages.setup is None:
                continue
            self.on_event(StageStarted(workload.name, "setup"))
            failure = self.measurement.set_up(workload)
            if failure is not None:
                self.left_out |= {workload.name}
                self.on_event(StageFailed(workload.name, "setup", failure))

    def _clean_up(self) -> None:
        """Clean up after every workload whose setup was begun, whatever became of it, the last one first."""
        for workload in reversed(self._begun):
            if workload.stages.cleanup is None:
                continue
            self.on_event(StageStarted(workload.name, "cleanup"))
            failure = self.measurement.clean_up(workload)
            if failure is not None:
                self.on_event(StageFailed(workload.name, "cleanup", failure))

    def _warm_up(self, first_round: int) -> None:
        """As many runs of each arm as its workload asks for; the arms take turns."""
        arms = list(dict.fromkeys((slot.workload, slot.configuration) for slot in self._missing(first_round)))
        most = max((self.workloads[workload].warmup for workload, _ in arms), default=0)
        runs = [arm for number in range(most) for arm in arms if self.workloads[arm[0]].warmup > number]
        for number, (workload, configuration) in enumerate(runs):
            self.on_event(WarmUpStarted(workload, configuration, number, len(runs)))
            self.measurement.warm_up(self.workloads[workload], self.configurations[configuration])

    def _end(self) -> Outcome:
        if self.stop():
            return Outcome.INTERRUPTED
        return Outcome.HOPELESS if self._is_hopeless() else Outcome.COMPLETE

    def _look(self) -> None:
        """See which arms are out of the race."""
        self.out = set(racing.out(self.experiment, self.records))
        self._known = None

    def _is_hopeless(self) -> bool:
        """Whether nothing of what this session runs is worth another round."""
        run = {(workload, each) for workload in self.workloads.keys() - self.left_out for each in self.configurations}
        return bool(run) and run <= schedule.given_up(self.records)

    def _missing(self, number: int) -> list[Slot]:
        """What this session still has to run of a round."""
        slots = schedule.missing(self.experiment, number, self.records, self.out)
        return [slot for slot in slots if slot.workload not in self.left_out]

    def _rehearse(self, first_round: int) -> None:
        slots = self._missing(first_round)
        arms = self.measurement.rehearsals(list(dict.fromkeys((slot.workload, slot.configuration) for slot in slots)))
        for number, (workload, configuration) in enumerate(arms):
            if workload in self.left_out:
                continue
            self.on_event(RehearsalStarted(workload, configuration, number, len(arms)))
            seen = self.measurement.rehearse(self.workloads[workload], self.configurations[configuration])
            if isinstance(seen, NeverReady | ToldNothing):
                self.left_out |= {workload}
            if seen is not None:
                self.on_event(seen)

    def _take(self, slot: Slot) -> None:
        done, total = self._progress()
        self.on_event(TrialStarted(slot, self._expected_rounds(), done, total, self._remaining_s()))
        before = self.clock()
        with self.stop.breakable():
            record = self.measurement.trial(
                self.workloads[slot.workload].in_round(slot.round), self.configurations[slot.configuration], slot
            )
        if self.stop():
            # Ctrl-C reaches the program too: what it did then is not what it does.
            raise TrialBrokenOff
        record = self._under_the_same_conditions(record)
        hopeless = self._given_up()
        self.log.append(record)
        self.records.append(record)
        self.overhead_s += max(0.0, self.clock() - before - schedule.elapsed_s(record))
        self.taken += 1
        done, total = self._progress()
        self.on_event(TrialEnded(record, done, total))
        for workload, configuration in self._given_up() - hopeless:
            self.on_event(GivenUp(workload, configuration, record.reason or record.status))

    def _under_the_same_conditions(self, record: TrialRecord) -> TrialRecord:
        changed = self.changed() if record.status == "ok" else None
        if changed is None:
            return record
        return record.model_copy(update={"status": "failed", "reason": f"{changed}: measure again"})

    def _overhead_s(self) -> float:
        return self.overhead_s / self.taken if self.taken else TRIAL_OVERHEAD_S

    def _spent_s(self) -> float:
        return self.earlier_s + self.clock() - self.began

    def _given_up(self) -> set[Arm]:
        return self._told()[0]

    def _costs(self) -> schedule.Costs | None:
        return self._told()[1]

    def _told(self) -> tuple[set[Arm], schedule.Costs | None]:
        """What the records say of what is to come: looked up once for each, or thousands would slow the next trial."""
        if self._known is None or self._known[0] != len(self.records):
            costs = schedule.costs(self.experiment, self.records, self._overhead_s(), self.left_out, self.out)
            self._known = (len(self.records), schedule.given_up(self.records) | self.out, costs)
        return self._known[1:]

    def _fits(self, number: int) -> bool:
        costs = self._costs()
        round_s = costs.round_s(number) if costs else None
        return schedule.fits_budget(self._spent_s(), round_s, self.experiment.time_budget_s)

    def _expected_rounds(self) -> int:
        """How many rounds there will be, as far as can be told."""
        budget, costs = self.experiment.time_budget_s, self._costs()
        if budget is None or costs is None:
            return self.experiment.rounds
        rounds = 1 + max((record.round for record in self.records), default=0)
        left_s = budget - self._spent_s() - self._missing_s(rounds, costs)
        while rounds < self.experiment.rounds and left_s >= costs.round_s(rounds):
            left_s -= costs.round_s(rounds)
            rounds += 1
        return rounds

    def _arms(self) -> int:
        """Trials of a full round, without what was given up or left out."""
        slots = plan_round(self.experiment, 0)
        return max(1, sum(self._is_run(slot.workload, slot.configuration) for slot in slots))

    def _is_run(self, workload: str, configuration: str) -> bool:
        return workload not in self.left_out and (workload, configuration) not in self._given_up()

    def _left(self, rounds: int) -> int:
        """Trials that are missing from the first ``rounds`` rounds."""
        done = sum(self._is_run(record.workload, record.configuration) for record in self.records)
        return max(0, rounds * self._arms() - done)

    def _missing_s(self, rounds: int, costs: schedule.Costs) -> float:
        """How long what is missing from the first ``rounds`` rounds will take."""
        asleep = self._left(min(rounds, costs.sleeping))
        awake = self._left(rounds) - asleep
        return (asleep * costs.asleep_s + awake * costs.awake_s) / self._arms()

    def _remaining_s(self) -> float | None:
        costs = self._costs()
        return None if costs is None else self._missing_s(self._expected_rounds(), costs)

    def _progress(self) -> tuple[int, int]:
        return len(self.records), len(self.records) + self._left(self._expected_rounds())


def mismatch(
    experiment: Experiment,
    machine: Machine,
    configurations: Sequence[Configuration],
    environment: Environment | None = None,
) -> str | None:
    """Why an experiment cannot be resumed here and now, in one line; None when it can.

    Args:
        experiment: the head of the folder to resume.
        machine: this one, as it is now.
        configurations: the experiment's, with the allocators as they are found now.
        environment: what programs would inherit now.
    """
    if experiment.freestone_version != freestone.__version__:
        return (
            f"it was begun by freestone {experiment.freestone_version}, and this one is {freestone.__version__}: go on "
            "with that version, or measure anew"
        )
    other = machines_differ(experiment.machine, machine)
    if other is not None:
        return f"it was begun on another machine, or on this one as it was set up otherwise: {other} (then and now)"
    differs = environments_differ(experiment.environment, environment)
    if differs:
        return f"it was begun in another environment: {differs} (then and now)"
    now = {configuration.name: configuration.allocator for configuration in configurations}
    for configuration in experiment.configurations:
        before, after = configuration.allocator, now.get(configuration.name)
        if after is None or not after.available:
            return f"allocator '{before.name}' is no longer here"
        if (before.file, before.build_id) != (after.file, after.build_id):
            was, now_is = before.build_id or before.file, after.build_id or after.file
            return f"allocator '{before.name}' is another one now (build-id {was} then, {now_is} now)"
    return None
