"""What a search keeps in its results folder, and how it is found again after whatever has ended it.

::

    20261126T120000Z-tune-sqlite/
      tuning.json        Tuning; written once, before anything runs
      search/01/         the first batch of rounds: a results folder as that of any comparison
      search/02/
      experiment.json    the finalists beside the untouched program, once they are chosen; then trials.jsonl and so on
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from freestone.doctor.goal import Goal
from freestone.records import regular, store
from freestone.records.schema import Configuration, Experiment, TrialRecord
from freestone.records.store import StoreError
from freestone.records.whole import why, write_whole

TUNING_FILE: Final = "tuning.json"
SEARCH_FOLDER: Final = "search"


class Tuning(BaseModel):
    """What was asked of a search."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    schema_version: int = 1
    goal: Goal
    memory: str = Field(description="the metric that is the program's memory")
    head: Experiment = Field(
        description="the program, the machine, and the configurations that the search begins with, the untouched one "
        "first; 'time_budget_s' is that of the whole"
    )


@dataclass(frozen=True)
class Batch:
    """Rounds that were run together, and what there is of them."""

    number: int
    folder: Path
    experiment: Experiment
    records: Sequence[TrialRecord]


def write_tuning(folder: Path, tuning: Tuning) -> None:
    """Write the head of a search.

    Raises:
        StoreError: it cannot be written.
    """
    try:
        write_whole(folder / TUNING_FILE, tuning.model_dump_json(indent=2) + "\n")
    except OSError as error:
        raise StoreError(f"cannot write {folder / TUNING_FILE}: {why(error)}") from error


def read_tuning(folder: Path) -> Tuning:
    """The head of a search.

    Raises:
        StoreError: there is none, or it is damaged.
    """
    path = folder / TUNING_FILE
    try:
        return Tuning.model_validate_json(regular.content(path))
    except FileNotFoundError as error:
        raise StoreError(f"{folder} holds no {TUNING_FILE}; give a results folder of freestone tune") from error
    except OSError as error:
        raise StoreError(f"cannot read {path}: {why(error)}") from error
    except ValidationError as error:
        raise StoreError(f"{path} is damaged: {error.errors()[0]['msg']}") from error


def batches(folder: Path) -> list[Batch]:
    """All batches of a search that were begun, in their order.

    Raises:
        StoreError: one has a damaged head, or cannot be read.
    """
    found = []
    for number in range(1, 1 + len(_folders(folder))):
        place = batch_folder(folder, number)
        if not (place / store.EXPERIMENT_FILE).exists():
            break  # ended before its head was written: it is written anew
        found.append(Batch(number, place, store.read_experiment(place), store.read_trials(place).records))
    return found


def begin_batch(folder: Path, tuning: Tuning, number: int, chosen: Sequence[Configuration], left_s: float) -> Batch:
    """The folder of a new batch with its head in it.

    Args:
        number: from 1 on.
        chosen: what is measured beside the untouched program.
        left_s: for which it may last.

    Raises:
        StoreError: it cannot be written.
    """
    head, place = tuning.head, batch_folder(folder, number)
    untouched = next(each for each in head.configurations if each.name == head.baseline)
    experiment = head.model_copy(
        update={
            "id": f"{head.id}-search-{number:02}",
            "configurations": [untouched, *(each for each in chosen if each.name != untouched.name)],
            "rounds": ROUNDS,
            "seed": head.seed + number,
            "time_budget_s": left_s,
        }
    )
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot write {place}: {why(error)}") from error
    store.write_experiment(place, experiment)
    return Batch(number, place, experiment, [])


def batch_folder(folder: Path, number: int) -> Path:
    """Where a batch is."""
    return folder / SEARCH_FOLDER / f"{number:02}"


ROUNDS: Final = 4
"""Of a batch: the fewest that have an interval, so that whoever can be told is out as soon as it can be."""


def _folders(folder: Path) -> list[Path]:
    try:
        return [each for each in (folder / SEARCH_FOLDER).iterdir() if each.is_dir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"cannot read {folder / SEARCH_FOLDER}: {why(error)}") from error
