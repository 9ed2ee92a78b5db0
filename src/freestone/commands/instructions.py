"""``freestone instructions``: what was measured, once more under valgrind: instructions, references, requests."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from functools import partial
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
from freestone.records.schema import Experiment, HeapCount, InstructionCount, InstructionCounts, Workload
from freestone.records.store import StoreError
from freestone.reports import references
from freestone.suites import SuiteError
from freestone.trials import LauncherBroken, NoValgrind, count_instructions, count_requests, valgrind_version

LONGEST_S = 600.0
"""Seconds that one run may take where nobody said otherwise."""

_MEMCHECK = "memcheck"


def instructions(
    results: Annotated[Path, Parameter(help="A results folder of freestone compare or freestone bench.")],
    /,
    *,
    only: Annotated[
        list[str] | None,
        Parameter(negative="", help="Workloads whose name matches this pattern, as in 'parallel-*'. May be repeated."),
    ] = None,
    timeout: Annotated[float, Parameter(help="Seconds after which a run is ended.")] = LONGEST_S,
    json: Annotated[bool, Parameter(negative="", help="Print the counts as JSON instead of tables.")] = False,
) -> int:
    """Count the instructions and memory references of each workload under each configuration, by valgrind.

    Each is run once more under cachegrind, which leaves the allocator in force: instructions, data reads and writes,
    cache misses, the functions that execute most. What the workload asks of malloc is counted once, by memcheck in
    malloc's place: it is the same under every allocator. Valgrind is slow, so workloads of a suite are counted at the
    suite's quick size, and nothing is timed. The counts are written into the results folder as instructions.json, one
    by one, and freestone report shows them. Counts of other workloads that are there already stay.

    Examples:

        freestone instructions results/20261120T131500Z-parallel
        freestone instructions results/20261120T131500Z-field --only 'mixed-*'

    Exit status: 0 fine, 2 wrong use, 3 nothing could be counted, 4 not everything could, 5 results could not be read or
    written.
    """
    try:
        Extent(timeout_s=timeout)
        experiment = store.read_experiment(results)
        names = suites.matching([each.name for each in experiment.workloads], only or [])
        chosen = [each for each in experiment.workloads if each.name in names]
        ledger = _Ledger(results, experiment)
        suites.prepare(chosen)
        good = _counted(experiment, chosen, timeout, ledger)
    except StoreError as error:
        raise Stop(str(error), ExitStatus.STORE) from error
    except (PlanError, SuiteError) as error:
        raise Stop(str(error), ExitStatus.USAGE) from error
    except (NoValgrind, LauncherBroken, NativePartMissing) as error:
        raise Stop(str(error), ExitStatus.NOTHING_MEASURED) from error
    if json:
        print(ledger.counts.model_dump_json(indent=2))
    else:
        width, colour, plain = terminal.width(), terminal.has_colour(sys.stdout), terminal.is_ascii(sys.stdout)
        print(references.render(ledger.counts, experiment.baseline, width=width, colour=colour, ascii_only=plain))
    return ExitStatus.FINE if all(good) else ExitStatus.PARTLY_MEASURED if any(good) else ExitStatus.NOTHING_MEASURED


class _Ledger:
    """The counts of a folder; on the disk after every addition."""

    def __init__(self, folder: Path, experiment: Experiment) -> None:
        before = store.read_instructions(folder)
        self._folder = folder
        self._experiment = experiment
        self._valgrind = valgrind_version()
        self._counts = {(each.workload, each.configuration): each for each in (before.counts if before else [])}
        self._heaps = {each.workload: each for each in (before.heaps if before else [])}

    @property
    def counts(self) -> InstructionCounts:
        """All of them, in the order of the experiment."""
        workloads = [each.name for each in self._experiment.workloads]
        arms = [(name, each.name) for name in workloads for each in self._experiment.configurations]
        return InstructionCounts(
            experiment=self._experiment.id,
            valgrind=self._valgrind,
            counts=[self._counts[arm] for arm in arms if arm in self._counts],
            heaps=[self._heaps[name] for name in workloads if name in self._heaps],
        )

    def add(self, count: InstructionCount | HeapCount) -> bool:
        """Take a count in; False where one that failed leaves an earlier one in its place."""
        before = (
            self._heaps.get(count.workload)
            if isinstance(count, HeapCount)
            else self._counts.get((count.workload, count.configuration))
        )
        if before is not None and before.status == "ok" and count.status != "ok":
            return False
        if isinstance(count, HeapCount):
            self._heaps[count.workload] = count
        else:
            self._counts[count.workload, count.configuration] = count
        store.write_instructions(self._folder, self.counts)
        return True


def _counted(experiment: Experiment, chosen: list[Workload], timeout_s: float, ledger: _Ledger) -> list[bool]:
    """Whether each run could be counted."""
    progress = Progress(sys.stderr, several=True)
    total = len(chosen) * (1 + len(experiment.configurations))
    good: list[bool] = []

    def add(workload: Workload, under: str, count: Callable[[], InstructionCount | HeapCount]) -> None:
        progress.step(f"counting {len(good) + 1}/{total}", workload.name, under)
        found = count()
        if not ledger.add(found):
            progress.line(f"{workload.name} under {under}: {found.status}: {found.reason}; the earlier count stays")
        good.append(found.status == "ok")

    try:
        with tempfile.TemporaryDirectory(prefix="freestone-") as name:
            scratch = Path(name)
            for each in chosen:
                add(each, _MEMCHECK, partial(count_requests, each, timeout_s=timeout_s, scratch=scratch))
                for configuration in experiment.configurations:
                    add(
                        each,
                        configuration.name,
                        partial(count_instructions, each, configuration, timeout_s=timeout_s, scratch=scratch),
                    )
    finally:
        progress.clear()
    return good
