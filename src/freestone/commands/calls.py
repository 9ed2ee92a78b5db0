"""``freestone calls``: the system calls of what was measured, counted in runs of their own."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from freestone import suites
from freestone.commands import terminal
from freestone.commands.progress import Progress
from freestone.commands.status import ExitStatus, Stop
from freestone.experiments.plan import Extent, PlanError
from freestone.native import NativePartMissing
from freestone.records import store
from freestone.records.schema import CallCount, CallCounts, Experiment
from freestone.records.store import StoreError
from freestone.reports import syscalls
from freestone.suites import SuiteError
from freestone.trials import LauncherBroken, NoCounter, count_calls


def calls(
    results: Annotated[Path, Parameter(help="A results folder of freestone compare or freestone bench.")],
    /,
    *,
    only: Annotated[
        list[str] | None,
        Parameter(negative="", help="Workloads whose name matches this pattern, as in 'loop-*'. May be repeated."),
    ] = None,
    timeout: Annotated[float | None, Parameter(help="Seconds after which a run is ended.")] = None,
    json: Annotated[bool, Parameter(negative="", help="Print the counts as JSON instead of tables.")] = False,
) -> int:
    """Count the system calls of each workload under each configuration: memory, futexes, barriers.

    Each is run once more, under strace, and never timed: what counts calls slows them down. The counts are written
    into the results folder as calls.json, one by one, and freestone report shows them. Counts of other workloads that
    are there already stay.

    Examples:

        freestone calls results/20261120T131500Z-faults
        freestone calls results/20261120T131500Z-faults --only 'loop-128K-*'

    Exit status: 0 fine, 2 wrong use, 3 nothing could be counted, 4 not everything could, 5 results could not be read or
    written.
    """
    try:
        Extent(timeout_s=timeout)
        experiment = store.read_experiment(results)
        names = suites.matching([each.name for each in experiment.workloads], only or [])
        ledger = _Ledger(results, experiment)
        good = _counted(experiment, names, timeout if timeout is not None else experiment.timeout_s, ledger)
    except StoreError as error:
        raise Stop(str(error), ExitStatus.STORE) from error
    except (PlanError, SuiteError) as error:
        raise Stop(str(error), ExitStatus.USAGE) from error
    except (NoCounter, LauncherBroken, NativePartMissing) as error:
        raise Stop(str(error), ExitStatus.NOTHING_MEASURED) from error
    if json:
        print(ledger.counts.model_dump_json(indent=2))
    else:
        width, colour, plain = terminal.width(), terminal.has_colour(sys.stdout), terminal.is_ascii(sys.stdout)
        print(syscalls.render(ledger.counts, width=width, colour=colour, ascii_only=plain))
    return ExitStatus.FINE if all(good) else ExitStatus.PARTLY_MEASURED if any(good) else ExitStatus.NOTHING_MEASURED


class _Ledger:
    """The counts of a folder; on the disk after every addition."""

    def __init__(self, folder: Path, experiment: Experiment) -> None:
        before = store.read_calls(folder)
        self._folder = folder
        self._experiment = experiment
        self._counts = {(each.workload, each.configuration): each for each in (before.counts if before else [])}

    @property
    def counts(self) -> CallCounts:
        """All of them, in the order of the experiment."""
        configurations = [each.name for each in self._experiment.configurations]
        arms = [(each.name, name) for each in self._experiment.workloads for name in configurations]
        return CallCounts(
            experiment=self._experiment.id, counts=[self._counts[arm] for arm in arms if arm in self._counts]
        )

    def add(self, count: CallCount) -> bool:
        """Take a count in; False where one that failed leaves an earlier one in its place."""
        arm = (count.workload, count.configuration)
        if count.status != "ok" and arm in self._counts and self._counts[arm].status == "ok":
            return False
        self._counts[arm] = count
        store.write_calls(self._folder, self.counts)
        return True


def _counted(experiment: Experiment, names: list[str], timeout_s: float | None, ledger: _Ledger) -> list[bool]:
    """Whether each run could be counted."""
    progress = Progress(sys.stderr, several=True)
    workloads = [each for each in experiment.workloads if each.name in names]
    every = [(workload, configuration) for workload in workloads for configuration in experiment.configurations]
    good = []
    try:
        with tempfile.TemporaryDirectory(prefix="freestone-") as scratch:
            for number, (workload, configuration) in enumerate(every, start=1):
                progress.step(f"counting {number}/{len(every)}", workload.name, configuration.name)
                found = count_calls(workload, configuration, timeout_s=timeout_s, scratch=Path(scratch))
                if not ledger.add(found):
                    told = f"{workload.name} under {configuration.name}: {found.status}: {found.reason}"
                    progress.line(f"{told}; the earlier count stays")
                good.append(found.status == "ok")
    finally:
        progress.clear()
    return good
