"""A patient's chart: what the doctor was asked for and what it tries, on the disk from the start, for ``--resume``."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from freestone.analysis.pareto import Goal
from freestone.doctor.observations import Observations
from freestone.doctor.remedies import Remedy
from freestone.records import regular
from freestone.records.schema import Experiment
from freestone.records.store import StoreError
from freestone.records.whole import write_whole

CHART: Final = "doctor.json"
OBSERVATIONS: Final = "observations.json"
"""What was seen; it is there as soon as anything was, and each part as soon as it was taken."""


class Chart(BaseModel):
    """What one diagnosis is made of."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    version: Literal[1] = 1
    experiment: Experiment
    """The untouched program alone, with the machine, the limits and the environment of the beginning."""
    goal: Goal = "balanced"
    allow_system_settings: bool = False
    observe_only: bool = False
    files: dict[str, str] = {}
    """What the command names, with its content, as in a record: another program is another patient."""
    remedies: dict[str, Remedy] | None = None
    """By the name of their configuration, the likeliest first; None until they are chosen."""
    left_out: list[tuple[Remedy, str]] = []
    """What is for what was found and is not tried, with why not."""
    given: dict[str, int] = {}
    """Switch of the kernel's -> folios of its size that the kernel gave while it was set, over all sessions."""


def write(folder: Path, chart: Chart) -> None:
    """Put it into the folder of the results, whole.

    Raises:
        StoreError: it cannot be written.
    """
    _write(folder / CHART, chart.model_dump_json(indent=2))


def read(folder: Path) -> Chart:
    """The chart of a folder.

    Raises:
        StoreError: there is none, or it is damaged; the message is one line.
    """
    try:
        return Chart.model_validate_json(regular.content(folder / CHART))
    except OSError as error:
        raise StoreError(f"{folder} holds no diagnosis to go on with: {CHART} cannot be read") from error
    except ValidationError as error:
        raise _damaged(folder / CHART, error) from error


def read_if_any(folder: Path) -> Chart | None:
    """The chart of a folder; None where there is none, as of a process that ran already.

    Raises:
        StoreError: it is damaged.
    """
    return read(folder) if (folder / CHART).exists() else None


def is_unfinished(chart: Chart, seen: Observations | None) -> bool:
    """Whether a part is still to be seen, or remedies are still to be chosen; rounds that are missing do not count."""
    if seen is None or seen.cost is None:
        return seen is None or "cost" not in seen.done
    if "sites" not in seen.done:  # the last part
        return True
    return not chart.observe_only and chart.remedies is None


def write_seen(folder: Path, seen: Observations) -> None:
    """Likewise what was seen so far."""
    _write(folder / OBSERVATIONS, seen.model_dump_json(indent=2))


def read_seen(folder: Path) -> Observations | None:
    """What was seen before; None where nothing was yet.

    Raises:
        StoreError: it is damaged.
    """
    try:
        return Observations.model_validate_json(regular.content(folder / OBSERVATIONS))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{folder / OBSERVATIONS} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise _damaged(folder / OBSERVATIONS, error) from error


def _damaged(file: Path, error: ValidationError) -> StoreError:
    first = error.errors()[0]
    return StoreError(f"{file} is damaged: {first['msg']} at {list(first['loc'])}")


def _write(file: Path, text: str) -> None:
    try:
        write_whole(file, text + "\n")
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error.strerror}") from error
