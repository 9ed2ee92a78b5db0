"""The system calls of a results folder: what is counted of them, and where the counts are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from freestone.commands.count_runs import CountRun
from freestone.records import store
from freestone.records.schema import CallCount, CallCounts, Experiment, Workload
from freestone.reports import syscalls
from freestone.trials import NoCounter, count_calls, permissions, strace


def obstacle() -> str | None:
    """Why system calls cannot be counted here, in one line; None where they can.

    Raises:
        LauncherBroken, NativePartMissing: the lab's own parts do not work.
    """
    try:
        strace()
    except NoCounter as error:
        return str(error)
    allowed = permissions()
    if not allowed.perf:
        return (
            "system calls are not counted: beside strace, only perf can prove who served malloc, and perf is refused "
            f"({allowed.perf_reason}); kernel.perf_event_paranoid of at most 2 allows it"
        )
    return None


class CallLedger:
    """The counts of a folder; on the disk after every addition."""

    def __init__(self, folder: Path, experiment: Experiment) -> None:
        """Read what was counted before.

        Raises:
            StoreError: it is damaged.
        """
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

    def runs(self, chosen: Sequence[Workload], timeout_s: float | None, scratch: Path) -> Iterator[CountRun]:
        """One run of each workload under each configuration.

        Args:
            timeout_s: None for the experiment's own.
            scratch: a folder for what strace writes.
        """
        limit_s = self._experiment.timeout_s if timeout_s is None else timeout_s
        for workload in chosen:
            for configuration in self._experiment.configurations:
                count = partial(count_calls, workload, configuration, timeout_s=limit_s, scratch=scratch)
                yield CountRun(workload.name, configuration.name, partial(self._taken, count))

    def text(self, *, width: int, colour: bool, ascii_only: bool) -> str:
        """Tables for a terminal."""
        return syscalls.render(self.counts, width=width, colour=colour, ascii_only=ascii_only)

    def _taken(self, run: Callable[[], CallCount]) -> tuple[CallCount, bool]:
        """Run and keep the count; False where one that failed leaves an earlier one in its place."""
        count = run()
        arm = (count.workload, count.configuration)
        if count.status != "ok" and arm in self._counts and self._counts[arm].status == "ok":
            return count, False
        self._counts[arm] = count
        store.write_calls(self._folder, self.counts)
        return count, True
