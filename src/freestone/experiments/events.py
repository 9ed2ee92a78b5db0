"""What an experiment tells whoever watches it, as it happens."""

from __future__ import annotations

from dataclasses import dataclass

from freestone.analysis.rounds import Slot
from freestone.records.schema import Asked, OwnHeap, TrialRecord
from freestone.trials import Moment, StageFailure


@dataclass(frozen=True)
class StageStarted:
    """A workload is set up or cleaned up."""

    workload: str
    title: str


@dataclass(frozen=True)
class StageFailed:
    """Setting a workload up or cleaning up after it went wrong. A workload that is not set up is not run."""

    workload: str
    title: str
    failure: StageFailure


@dataclass(frozen=True)
class RehearsalStarted:
    """An untimed run of one configuration begins."""

    workload: str
    configuration: str
    number: int
    total: int


@dataclass(frozen=True)
class WarmUpStarted:
    """A run that nobody measures begins, after the rehearsals and before the first round."""

    workload: str
    configuration: str
    number: int
    total: int


@dataclass(frozen=True)
class HeapsSeen:
    """A rehearsal has shown how much of a program's memory malloc serves and who serves the rest."""

    workload: str
    heaps: tuple[OwnHeap, ...]
    asked: Asked | None = None


@dataclass(frozen=True)
class NeverReady:
    """A server did not answer in its time, in a rehearsal and again under the baseline. It is not measured."""

    workload: str
    reason: str


@dataclass(frozen=True)
class ToldNothing:
    """The load of a server told no figures in a rehearsal, nor under the baseline. The server is not measured."""

    workload: str
    reason: str


@dataclass(frozen=True)
class TrialStarted:
    """A trial begins.

    ``done`` of ``total`` trials are finished; ``total`` counts the rounds that are expected to be run. ``remaining_s``
    is the estimate of what is left, None while there is nothing to estimate from.
    """

    slot: Slot
    rounds: int
    done: int
    total: int
    remaining_s: float | None


@dataclass(frozen=True)
class ServerSeen:
    """A server is running: told every second of a trial, and of no other."""

    slot: Slot
    rounds: int
    moment: Moment


@dataclass(frozen=True)
class TrialEnded:
    """A trial is finished and its record on the disk."""

    record: TrialRecord
    done: int
    total: int


@dataclass(frozen=True)
class GivenUp:
    """A configuration that had no good trial in its first rounds is no longer tried."""

    workload: str
    configuration: str
    reason: str


@dataclass(frozen=True)
class BudgetSpent:
    """No further round fits the time budget."""

    rounds: int


Event = (
    StageStarted
    | StageFailed
    | RehearsalStarted
    | WarmUpStarted
    | HeapsSeen
    | NeverReady
    | ToldNothing
    | TrialStarted
    | ServerSeen
    | TrialEnded
    | GivenUp
    | BudgetSpent
)
