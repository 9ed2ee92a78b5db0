"""``freestone list``: the results so far, newest first."""

from __future__ import annotations

import dataclasses
import json as json_format
import os
import re
import shlex
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from freestone.analysis import arms
from freestone.commands import program, terminal
from freestone.commands.status import ExitStatus, Stop
from freestone.doctor import chart as charts
from freestone.doctor import diagnosis, symptoms
from freestone.doctor.headline import condition
from freestone.experiments import unfinished
from freestone.records import store
from freestone.records.schema import Experiment, Summary, TrialRecord
from freestone.records.store import StoreError
from freestone.records.whole import why
from freestone.tuning import kept

State = Literal["complete", "interrupted", "running", "damaged"]

_NAMED: Final = re.compile(r"\d{8}T\d{6}Z-")
"""How the name of a results folder begins."""

_FLAGS: Final = ("--quick", "--json")
"""Options of bench that no value follows."""

_RESUMING: Final = ("bench", "doctor", "tune")
"""Verbs that go on with their own results; compare does with all others."""


@dataclass(frozen=True)
class _Listed:
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
    headline: str | None = None


def list_results(
    folder: Annotated[Path | None, Parameter(show=False)] = None,
    /,
    *,
    results: Annotated[Path | None, Parameter(help="The folder that holds all results. Default: results.")] = None,
    json: Annotated[bool, Parameter(negative="", help="Print JSON.")] = False,
) -> int:
    """Show the results so far, newest first: what was measured under which allocators, how far it came, who won.

    An experiment is complete when every round that was asked for has been run. One that was interrupted is shown with
    the line that goes on with it, one that is being measured as running.

    Examples:

        freestone list
        freestone list --results other-results --json

    Exit status: 0 fine, also where a folder is damaged, which is named; 2 wrong use, 5 the folder cannot be read.
    """
    if folder is not None and results is not None:
        raise Stop(f"results are of one folder: {folder} or --results {results}", ExitStatus.USAGE)
    results = folder if results is None else results  # who types the folder alone is understood
    place = Path("results") if results is None else results
    try:
        folders = _folders(place)
    except FileNotFoundError as error:
        if results is not None:
            raise Stop(f"{place} does not exist; --results takes the folder that holds all results", 5) from error
        folders = []
    except OSError as error:
        raise Stop(f"cannot read {place}: {why(error)}", ExitStatus.STORE) from error
    found = sorted((_listed(folder) for folder in folders), key=lambda each: each.created_at or "", reverse=True)
    if json:
        print(json_format.dumps([dataclasses.asdict(each) for each in found], indent=2, ensure_ascii=False))
        return ExitStatus.FINE
    if not found:
        print(
            f"freestone: no results in {place} yet; 'freestone compare -- CMD' makes the first, "
            "--results PATH looks elsewhere",
            file=sys.stderr,
        )
    for each in found:
        if each.reason is not None:
            print(f"freestone: {each.reason}", file=sys.stderr)
    print("\n\n".join(_text(each) for each in found if each.state != "damaged"), end="\n" if found else "")
    return ExitStatus.FINE


def _folders(place: Path) -> list[Path]:
    """The results folders in a folder; or that folder, where it is one itself.

    Raises:
        OSError: it cannot be read.
    """
    if os.path.exists(place / store.EXPERIMENT_FILE) or diagnosis.is_one(place):
        return [place]
    folders = [each for each in sorted(place.iterdir()) if os.path.isdir(each) and _is_one(each)]
    return [each for folder in folders for each in store.places(folder)]


def _is_one(folder: Path) -> bool:
    """Whether a folder holds results, or was made to."""
    files = (store.EXPERIMENT_FILE, store.TRIALS_FILE, charts.CHART, charts.OBSERVATIONS)
    return _NAMED.match(folder.name) is not None or any(os.path.exists(folder / name) for name in files)


def _listed(folder: Path) -> _Listed:
    name = folder.resolve().name
    try:
        if not (folder / store.EXPERIMENT_FILE).exists() and (folder / kept.TUNING_FILE).exists():
            return _searching(name, folder)
        if diagnosis.is_one(folder):
            return _diagnosed(name, folder)
        return _measured(name, folder)
    except StoreError as error:
        return _Listed(name, str(folder), "damaged", str(error))


def _measured(name: str, folder: Path) -> _Listed:
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
    done = arms.complete_rounds(experiment, records)
    state: State = "complete" if _is_complete(experiment, records, done) else "interrupted"
    if store.is_being_written(folder):
        state = "running"
    current = summary if summary is not None and summary.rounds_complete == done else None
    listed = _told(name, folder, experiment, state, done, current)
    return dataclasses.replace(listed, reason=store.damage_line(folder, reading.damage))


def _diagnosed(name: str, folder: Path) -> _Listed:
    """A diagnosis, with what it suffers from before what came of the rounds, where any was run.

    Raises:
        StoreError: it is damaged.
    """
    seen, chart = charts.read_seen(folder), charts.read_if_any(folder)
    says = None if seen is None else f"{condition(seen, symptoms.name(seen))}."
    if (folder / store.EXPERIMENT_FILE).exists():
        listed = _measured(name, folder)
        return dataclasses.replace(listed, headline=" ".join(part for part in (says, listed.headline) if part))
    command = seen.command if seen is not None else chart.experiment.workloads[0].command if chart is not None else []
    unfinished: State = "running" if store.is_being_written(folder) else "interrupted"
    return _Listed(
        name,
        str(folder),
        unfinished if chart is not None and charts.is_unfinished(chart, seen) else "complete",
        created_at=chart.experiment.created_at if chart is not None else _begun_at(name),
        verb="doctor",
        command=command,
        workloads=1,
        headline=says,
    )


def _begun_at(name: str) -> str | None:
    """When a folder was made, by its name."""
    found = _NAMED.match(name)
    return None if found is None else datetime.strptime(found[0], "%Y%m%dT%H%M%SZ-").replace(tzinfo=UTC).isoformat()


def _searching(name: str, folder: Path) -> _Listed:
    """A search that has no finalists yet.

    Raises:
        StoreError: it is damaged.
    """
    is_running = any(store.is_being_written(each.folder) for each in kept.batches(folder))
    return _told(name, folder, kept.read_tuning(folder).head, "running" if is_running else "interrupted", 0, None)


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


def _told(name: str, folder: Path, experiment: Experiment, state: State, done: int, summary: Summary | None) -> _Listed:
    verb = (experiment.command_line[1:2] or ["compare"])[0]
    of_bench = verb == "bench"
    return _Listed(
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


def _text(listed: _Listed) -> str:
    """What a terminal shows of a results folder: its place, and indented what is known of it."""
    name = listed.folder
    if terminal.has_colour(sys.stdout):
        name = f"\x1b[1m{name}\x1b[0m"
    lines = [_how_far(listed), _what(listed), ", ".join(listed.configurations or []), listed.headline or ""]
    if listed.state == "interrupted":
        verb = listed.verb if listed.verb in _RESUMING else "compare"
        lines.append(f"go on with: {program.tool_as_typed()} {verb} --resume {shlex.quote(listed.folder)}")
    room = terminal.width() - 2
    wrapped = [part for line in lines for part in textwrap.wrap(line, room, break_on_hyphens=False)]
    text = "\n".join([name, *(f"  {part}" for part in wrapped)])
    return text.replace("×", "x").encode("ascii", "replace").decode() if terminal.is_ascii(sys.stdout) else text


def _how_far(listed: _Listed) -> str:
    if listed.rounds is None:
        return f"{_when(listed.created_at or '')}, {listed.state}: looked at, nothing tried"
    done, asked = listed.rounds_complete or 0, listed.rounds
    rounds = f"{done} of {asked} rounds"
    if listed.time_budget_s is not None:
        rounds = f"{done} round{'' if done == 1 else 's'} within {listed.time_budget_s:g} s"
    return f"{_when(listed.created_at or '')}, {listed.state}: {rounds}"


def _what(listed: _Listed) -> str:
    count = listed.workloads or 0
    if listed.suites is not None:
        return f"bench {' '.join(listed.suites)} ({count} workload{'' if count == 1 else 's'})"
    command = shlex.join(listed.command or [])
    room = max(20, 2 * terminal.width() - 40)
    shown = command if len(command) <= room else command[: room - 3] + "..."
    return f"{listed.verb} -- {shown}" + (f" (and {count - 1} more)" if count > 1 else "")


def _when(created_at: str) -> str:
    try:
        return f"{datetime.fromisoformat(created_at).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return created_at
