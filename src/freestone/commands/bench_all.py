"""``freestone bench all``: every suite that comes along, each an experiment of its own, and one report of them all.

What was asked for and how far it has come stand in one file beside the suites' folders, so that a later session goes on
with it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from freestone import suites
from freestone.commands import bench_suites, measurement, scoreboard
from freestone.commands.bench_request import ALL, BenchRequest
from freestone.commands.program import tool_as_typed
from freestone.commands.status import ExitStatus
from freestone.experiments.plan import PlanError
from freestone.records.store import StoreError
from freestone.records.whole import why, write_whole
from freestone.reports import extras
from freestone.suites import Setting, SuiteError

REPORT: Final = "all.html"

QUICK_S: Final = 1320.0
"""What all suites take together at their small sizes, where nobody said how often."""

_COURSE: Final = "all.json"


class _Course(BaseModel):
    """How far it has come. ``folders``: of the suites that were begun, by name, below the folder of results; ``ended``:
    exit status of those that were measured to their end, or cannot be."""

    model_config = ConfigDict(extra="forbid")

    request: BenchRequest
    subject: str | None
    folders: dict[str, str]
    ended: dict[str, int]


def begun(results: Path, request: BenchRequest, subject: str | None) -> int:
    """Measure every suite as ``request`` has it; the exit status.

    Args:
        subject: the allocator that is held against the best of the others; None for the usual one.

    Raises:
        AllocatorError, PlanError, SuiteError, StoreError: what was asked for cannot be measured or written.
    """
    if request.only or request.idle is not None or request.idle_rounds is not None:
        raise SuiteError(f"'{ALL}' stands alone: --only and --idle are for single suites")
    # Wrong for every suite is wrong before the first.
    request.extent()
    request.require(_settings(request), measurement.chosen(request.allocators, request.baseline)[0])
    return _followed(results, _Course(request=request, subject=subject, folders={}, ended={}))


def is_begun(results: Path) -> bool:
    """Whether a folder of results has an account of all suites."""
    return (results / _COURSE).exists()


def resumed(results: Path, given: Sequence[str]) -> int:
    """Go on where an earlier session was interrupted; the exit status.

    Args:
        given: options that were given beside ``--resume``.

    Raises:
        AllocatorError, PlanError, SuiteError, StoreError, Stop: it cannot go on.
    """
    if given:
        raise PlanError(f"--resume goes on with the settings of {results}; leave out {', '.join(given)}")
    file = results / _COURSE
    try:
        course = _Course.model_validate_json(file.read_bytes())
    except OSError as error:
        raise StoreError(f"cannot read {file}: {why(error)}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise StoreError(
            f"{file} is damaged ({first['msg']}); remove it, and resume each suite's own folder in {results}"
        ) from error
    return _followed(results, course)


def _followed(results: Path, course: _Course) -> int:
    until = time.monotonic() + QUICK_S
    left = [name for name in suites.leaders() if name not in course.ended]
    if not left:
        print("freestone: every suite is measured: nothing was left but to write the report", file=sys.stderr)
    for number, name in enumerate(left):
        print(f"freestone: suite {name}", file=sys.stderr)
        share_s = (until - time.monotonic()) / (len(left) - number)
        try:
            status = _measured(results, course, name, share_s)
        except SuiteError as error:
            print(f"freestone: {error}", file=sys.stderr)
            status = ExitStatus.PARTLY_MEASURED
        if status == ExitStatus.STORE or status > 128:
            again = f"{tool_as_typed()} bench --resume {results}"
            print(f"freestone: all suites go on with: {again}", file=sys.stderr)
            return status
        course.ended[name] = status
        _write(results, course)
    folders = [results / folder for folder in course.folders.values()]
    if not folders:
        raise SuiteError("no suite can be measured here")
    _report(folders, results / REPORT)
    return max(course.ended.values())


def _report(folders: Sequence[Path], destination: Path) -> None:
    lacking = extras.missing()
    if lacking is not None:
        print(f"freestone: no {destination.name}: {lacking}", file=sys.stderr)
        return
    from freestone.reports import html  # late: the figures' libraries are large

    try:
        print(f"Report:  {html.write(folders, destination)}")
    except html.ReportError as error:
        raise StoreError(str(error)) from error


def _measured(results: Path, course: _Course, name: str, share_s: float) -> int:
    """One suite, begun or resumed, with so many seconds where everything is to be quick."""
    if name in course.folders:
        folder = results / course.folders[name]
        experiment, left_out = bench_suites.resumed(folder, [])
        held = scoreboard.subject_of(experiment, course.subject)
        return bench_suites.measured(folder, experiment, held, left_out=left_out)
    request = course.request.of(suites.load(name), _settings(course.request))
    experiment = request.within(share_s).experiment([name], name)
    held = scoreboard.subject_of(experiment, course.subject)
    folder = measurement.begun(results, name, experiment)
    course.folders[name] = folder.name
    _write(results, course)
    return bench_suites.measured(folder, experiment, held)


def _settings(request: BenchRequest) -> list[Setting]:
    """Those of all suites that are measured too."""
    return suites.settings([suites.load(name) for name in suites.leaders()], request.settings)


def _write(results: Path, course: _Course) -> None:
    try:
        write_whole(results / _COURSE, course.model_dump_json(indent=1) + "\n")
    except OSError as error:
        raise StoreError(f"cannot write {results / _COURSE}: {why(error)}") from error
