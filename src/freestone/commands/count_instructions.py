"""Instructions, references and requests to malloc of a results folder: what is counted, and where that is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from freestone.commands.count_runs import CountRun
from freestone.records import store
from freestone.records.schema import Experiment, HeapCount, InstructionCount, InstructionCounts, Workload
from freestone.reports import references
from freestone.trials import NoValgrind, count_instructions, count_requests, valgrind_version

LONGEST_S: Final = 600.0
"""Seconds that one run may take where nobody said otherwise."""

_MEMCHECK: Final = "memcheck"


def obstacle() -> str | None:
    """Why instructions cannot be counted here, in one line; None where they can."""
    try:
        valgrind_version()
    except NoValgrind as error:
        return str(error)
    return None


class InstructionLedger:
    """The counts of a folder; on the disk after every addition."""

    def __init__(self, folder: Path, experiment: Experiment) -> None:
        """Read what was counted before.

        Raises:
            StoreError: it is damaged.
            NoValgrind: there is none.
        """
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

    def runs(self, chosen: Sequence[Workload], timeout_s: float | None, scratch: Path) -> Iterator[CountRun]:
        """Of each workload one run by memcheck, and one under each configuration by cachegrind.

        Args:
            timeout_s: None for :data:`LONGEST_S`.
            scratch: a folder for what valgrind writes.
        """
        limit_s = LONGEST_S if timeout_s is None else timeout_s
        for workload in chosen:
            asked = partial(count_requests, workload, timeout_s=limit_s, scratch=scratch)
            yield CountRun(workload.name, _MEMCHECK, partial(self._taken, asked))
            for configuration in self._experiment.configurations:
                count = partial(count_instructions, workload, configuration, timeout_s=limit_s, scratch=scratch)
                yield CountRun(workload.name, configuration.name, partial(self._taken, count))

    def text(self, *, width: int, colour: bool, ascii_only: bool) -> str:
        """Tables for a terminal."""
        baseline = self._experiment.baseline
        return references.render(self.counts, baseline, width=width, colour=colour, ascii_only=ascii_only)

    def _taken(self, run: Callable[[], InstructionCount | HeapCount]) -> tuple[InstructionCount | HeapCount, bool]:
        """Run and keep the count; False where one that failed leaves an earlier one in its place."""
        count = run()
        before = (
            self._heaps.get(count.workload)
            if isinstance(count, HeapCount)
            else self._counts.get((count.workload, count.configuration))
        )
        if before is not None and before.status == "ok" and count.status != "ok":
            return count, False
        if isinstance(count, HeapCount):
            self._heaps[count.workload] = count
        else:
            self._counts[count.workload, count.configuration] = count
        store.write_instructions(self._folder, self.counts)
        return count, True
