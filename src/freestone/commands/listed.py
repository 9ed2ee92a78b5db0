"""What is told of one results folder, whatever state it is in: read from its files, never written."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from freestone.analysis import arms, racing
from freestone.doctor import chart as charts
from freestone.doctor import diagnosis, symptoms
from freestone.doctor.headline import condition
from freestone.experiments import unfinished
from freestone.records import store
from freestone.records.schema import Experiment, Machine, Summary, TrialRecord
from freestone.records.store import StoreError
from freestone.records.whole import why

State = Literal["complete", "interrupted", "running", "damaged"]

NAMED: Final = re.compile(r"\d{8}T\d{6}Z-")
"""How the name of a results folder begins."""

_LONGEST: Final = 200
"""Characters of what went wrong where nobody expected it."""

_FLAGS: Final = ("--quick", "--json")
"""Options of bench that no value follows."""


@dataclass(frozen=True)
class Listed:
    """What is told of one results folder. Of a damaged one that is its place and the reason."""

    name: str
    folder: str
    state: State
    reason: str | None = None
    created_at: str | None = None
    verb: str | None = None
    command: list[str] | None = None
    suites: list[str] | None = None
    workloads: int | None = None
    configurations: list[str] | None = None
    baseline: str | None = None
    rounds_complete: int | None = None
    rounds: int | None = None
    time_budget_s: float | None = None
    machine: str | None = None
    headline: str | None = None
    order: str | None = None
    """The folder of the order that it is a place of, which is what goes on; None where it is nobody's."""


def folders(place: Path) -> list[Path]:
    """The results folders in a folder; or that folder, where it is one itself.

    Args:
        place: the folder that holds all results, or one of them.

    Raises:
        OSError: it cannot be read.
    """
    if os.path.exists(place / store.EXPERIMENT_FILE) or diagnosis.is_one(place):
        return [place]
    found = [each for each in sorted(place.iterdir()) if os.path.isdir(each) and _is_one(each)]
    return [each for folder in found for each in _places(folder)]


def _places(folder: Path) -> list[Path]:
    """The results folders of several places; where they cannot be read the folder itself: its reader says why."""
    try:
        return store.places(folder)
    except OSError:
        return [folder]


def _is_one(folder: Path) -> bool:
    """Whether a folder holds results, or was made to."""
    if folder.name.startswith("."):  # what is being put together, or was left by whoever was killed at that
        return False
    files = (store.EXPERIMENT_FILE, store.TRIALS_FILE, store.ORDER_FILE, charts.CHART, charts.OBSERVATIONS)
    return NAMED.match(folder.name) is not None or any(os.path.exists(folder / name) for name in files)


def listed(folder: Path) -> Listed:
    """What is told of one results folder."""
    return dataclasses.replace(_listed(folder), order=_order(folder))


def _order(folder: Path) -> str | None:
    """The folder of the order that a results folder is of; what was merged has none that goes on."""
    above = folder.parent if folder.name else folder.resolve().parent
    try:
        if not (above / store.ORDER_FILE).exists():
            return None
        merged = any(place.engine == "merged" for place in store.read_order(above).places)
    except (StoreError, OSError):  # whoever goes on with it is told why not
        return str(above)
    return None if merged else str(above)


def _listed(folder: Path) -> Listed:
    name = folder.resolve().name
    try:
        if diagnosis.is_one(folder):
            return _diagnosed(name, folder)
        return _measured(name, folder)
    except StoreError as error:
        return Listed(name, str(folder), "damaged", str(error))
    except OSError as error:
        return Listed(name, str(folder), "damaged", f"cannot read {error.filename or folder}: {why(error)}")
    except Exception as error:  # one folder, whatever it holds, takes no other one from the list
        said = " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST]
        return Listed(name, str(folder), "damaged", f"cannot tell what {folder} holds: {said}")


def _measured(name: str, folder: Path) -> Listed:
    """An experiment.

    Raises:
        StoreError: it is damaged.
    """
    experiment = store.read_experiment(folder)
    summary = _summary(folder)
    if summary is not None and summary.rounds_complete >= experiment.rounds:
        return _told(name, folder, experiment, "complete", summary.rounds_complete, summary)
    reading = store.read_trials(folder)
    records = arms.counted(experiment, reading.records)
    done = arms.complete_rounds(experiment, records, racing.out(experiment, records))
    state: State = "complete" if _is_complete(experiment, records, done) else "interrupted"
    if store.is_being_written(folder):
        state = "running"
    current = summary if summary is not None and summary.rounds_complete == done else None
    told = _told(name, folder, experiment, state, done, current)
    return dataclasses.replace(told, reason=store.damage_line(folder, reading.damage))


def _diagnosed(name: str, folder: Path) -> Listed:
    """A diagnosis, with what it suffers from before what came of the rounds, where any was run.

    Raises:
        StoreError: it is damaged.
    """
    seen, chart = charts.read_seen(folder), charts.read_if_any(folder)
    says = None if seen is None else f"{condition(seen, symptoms.name(seen))}."
    if (folder / store.EXPERIMENT_FILE).exists():
        rounds = _measured(name, folder)
        return dataclasses.replace(rounds, headline=" ".join(part for part in (says, rounds.headline) if part))
    command = seen.command if seen is not None else chart.experiment.workloads[0].command if chart is not None else []
    unfinished: State = "running" if store.is_being_written(folder) else "interrupted"
    return Listed(
        name,
        str(folder),
        unfinished if chart is not None and charts.is_unfinished(chart, seen) else "complete",
        created_at=chart.experiment.created_at if chart is not None else _begun_at(name),
        verb="doctor",
        command=command,
        workloads=1,
        machine=_machine(chart.experiment.machine) if chart is not None else None,
        headline=says,
    )


def _begun_at(name: str) -> str | None:
    """When a folder was made, by its name."""
    found = NAMED.match(name)
    return None if found is None else datetime.strptime(found[0], "%Y%m%dT%H%M%SZ-").replace(tzinfo=UTC).isoformat()


def _is_complete(experiment: Experiment, records: Sequence[TrialRecord], done: int) -> bool:
    """Whether nothing is left to run; within a time budget: whether what was begun is whole."""
    if not unfinished(experiment, records):
        return True
    begun = {record.round for record in records}
    return experiment.time_budget_s is not None and done == len(begun) > 0


def _summary(folder: Path) -> Summary | None:
    try:
        return store.read_summary(folder)
    except StoreError:
        return None  # there is none yet, or it is damaged: it can be computed again


def _told(name: str, folder: Path, experiment: Experiment, state: State, done: int, summary: Summary | None) -> Listed:
    verb = (experiment.command_line[1:2] or ["compare"])[0]
    of_bench = verb == "bench"
    return Listed(
        name,
        str(folder),
        state,
        created_at=experiment.created_at,
        verb=verb,
        command=None if of_bench else experiment.workloads[0].command,
        suites=_suites(experiment) if of_bench else None,
        workloads=len(experiment.workloads),
        configurations=[each.name for each in experiment.configurations],
        baseline=experiment.baseline,
        rounds_complete=done,
        rounds=experiment.rounds,
        time_budget_s=experiment.time_budget_s,
        machine=_machine(experiment.machine),
        headline=summary.headline if summary is not None else None,
    )


def _suites(experiment: Experiment) -> list[str]:
    """The suites that were asked for; of ``bench all`` that one of them which this folder holds."""
    words = experiment.command_line[2:]
    pairs = zip(["", *words], words, strict=False)
    named = [word for before, word in pairs if not word.startswith("-") and not _takes(before)]
    return [experiment.id.partition("-")[2].rpartition("-")[0]] if named == ["all"] else named


def _takes(option: str) -> bool:
    """Whether the next word is this one's value."""
    return option.startswith("-") and "=" not in option and option not in _FLAGS


def _machine(machine: Machine) -> str:
    """The processor, how many of it, and its identity, which tells two that are alike apart."""
    cpu, count = machine.facts.get("cpu"), machine.facts.get("cores_online")
    parts = [str(cpu) if cpu else "", f"{count} CPUs" if count else "", machine.id]
    return ", ".join(part for part in parts if part)
