"""``--count``: system calls, instructions and requests to malloc of what was measured, in runs of their own."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from freestone.commands import terminal
from freestone.commands.progress import Progress
from freestone.commands.status import ExitStatus, Stop
from freestone.native import NativePartMissing
from freestone.records import store
from freestone.records.schema import (
    CallCount,
    CallCounts,
    Experiment,
    HeapCount,
    InstructionCount,
    InstructionCounts,
    Workload,
)
from freestone.reports import references, syscalls
from freestone.trials import (
    LauncherBroken,
    NoCounter,
    NoValgrind,
    count_calls,
    count_instructions,
    count_requests,
    permissions,
    run_stage,
    strace,
    valgrind_version,
)

Kind = Literal["calls", "instructions"]

Counted = Annotated[
    list[Kind] | None,
    Parameter(
        name="--count",
        negative="",
        help="Then run all once more, untimed, and count: calls (system calls, by strace) or instructions (with what "
        "is asked of malloc, by valgrind). May be given again.",
    ),
]

LONGEST_S: Final = 600.0
"""Seconds that one run under valgrind may take, if the experiment's limit is not longer."""

_MEMCHECK: Final = "memcheck"


class Counting:
    """The counts of a results folder: each is on the disk as soon as it is there.

    System calls are those about memory, futexes and barriers. Instructions, data references, cache misses and the
    functions that execute most are counted by cachegrind, which leaves the allocator in force; requests to malloc by
    memcheck in malloc's place, once, as they are the same under every allocator.
    """

    def __init__(self, folder: Path, experiment: Experiment, kinds: Sequence[Kind]) -> None:
        """Read the earlier counts.

        Raises:
            StoreError: they are damaged: told before anything runs.
        """
        self._folder = folder
        self._experiment = experiment
        self._kinds = [kind for kind in ("calls", "instructions") if kind in kinds]
        calls = store.read_calls(folder) if "calls" in kinds else None
        instructions = store.read_instructions(folder) if "instructions" in kinds else None
        self._calls = {(each.workload, each.configuration): each for each in (calls.counts if calls else [])}
        known = instructions.counts if instructions else []
        self._instructions = {(each.workload, each.configuration): each for each in known}
        self._heaps = {each.workload: each for each in (instructions.heaps if instructions else [])}

    @property
    def calls(self) -> CallCounts:
        """System calls, in the order of the experiment."""
        return CallCounts(
            experiment=self._experiment.id, counts=[self._calls[arm] for arm in self._arms() if arm in self._calls]
        )

    @property
    def instructions(self) -> InstructionCounts:
        """What valgrind has counted, in the order of the experiment."""
        return InstructionCounts(
            experiment=self._experiment.id,
            valgrind=valgrind_version(),
            counts=[self._instructions[arm] for arm in self._arms() if arm in self._instructions],
            heaps=[self._heaps[each.name] for each in self._experiment.workloads if each.name in self._heaps],
        )

    def take(self, progress: Progress, left_out: Collection[str] = ()) -> bool:
        """Count what has no good count yet; whether everything could be counted.

        Args:
            left_out: workloads that are not run now.

        Raises:
            StoreError: a count could not be written; earlier ones are as they were.
            LauncherBroken, NativePartMissing: the lab's own parts do not work.
        """
        chosen = [each for each in self._experiment.workloads if each.name not in left_out]
        good = True
        with tempfile.TemporaryDirectory(prefix=f"freestone-{os.getpid()}-") as scratch:
            place = Path(scratch)
            wanted = [each for each in chosen if any(self._missing(each, place))]
            with _set_up(wanted, self._experiment.timeout_s, place) as ready:
                runs = [(each, *run) for each in ready for run in self._missing(each, place)]
                for number, (workload, under, run) in enumerate(runs, start=1):
                    progress.step(f"counting {number}/{len(runs)}", workload.name, under)
                    good = run() and good
            return good and len(ready) == len(wanted)

    def text(self) -> str:
        """Tables for the terminal."""
        width, colour, plain = terminal.width(), terminal.has_colour(sys.stdout), terminal.is_ascii(sys.stdout)
        found = []
        if "calls" in self._kinds:
            found.append(syscalls.render(self.calls, width=width, colour=colour, ascii_only=plain))
        if "instructions" in self._kinds:
            baseline = self._experiment.baseline
            found.append(references.render(self.instructions, baseline, width=width, colour=colour, ascii_only=plain))
        return "\n\n".join(found)

    def as_json(self) -> Mapping[str, object]:
        """What was asked for, by its kind."""
        held = [(kind, self.calls if kind == "calls" else self.instructions) for kind in self._kinds]
        return {kind: json.loads(counts.model_dump_json()) for kind, counts in held}

    def _arms(self) -> list[tuple[str, str]]:
        configurations = [each.name for each in self._experiment.configurations]
        return [(each.name, name) for each in self._experiment.workloads for name in configurations]

    def _missing(self, workload: Workload, scratch: Path) -> Iterator[tuple[str, Callable[[], bool]]]:
        """Each run of a workload that is still to be taken: under what, and what runs it and says if it is good."""
        limit_s = self._experiment.timeout_s
        long_s = max(LONGEST_S, limit_s or 0.0)
        configurations = self._experiment.configurations
        for configuration in configurations if "calls" in self._kinds else []:
            if not _is_good(self._calls.get((workload.name, configuration.name))):
                one = partial(count_calls, workload, configuration, timeout_s=limit_s, scratch=scratch)
                yield configuration.name, partial(self._kept, one)
        if "instructions" not in self._kinds:
            return
        if not _is_good(self._heaps.get(workload.name)):
            yield _MEMCHECK, partial(self._kept, partial(count_requests, workload, timeout_s=long_s, scratch=scratch))
        for configuration in configurations:
            if not _is_good(self._instructions.get((workload.name, configuration.name))):
                two = partial(count_instructions, workload, configuration, timeout_s=long_s, scratch=scratch)
                yield configuration.name, partial(self._kept, two)

    def _kept(self, run: Callable[[], CallCount | InstructionCount | HeapCount]) -> bool:
        """Run and keep the count; whether it is good."""
        count = run()
        match count:
            case CallCount():
                self._calls[count.workload, count.configuration] = count
                store.write_calls(self._folder, self.calls)
            case InstructionCount():
                self._instructions[count.workload, count.configuration] = count
                store.write_instructions(self._folder, self.instructions)
            case HeapCount():
                self._heaps[count.workload] = count
                store.write_instructions(self._folder, self.instructions)
        return _is_good(count)


def require_tools(kinds: Sequence[Kind] | None) -> None:
    """Raise Stop if what counts cannot be had here: told before anything runs."""
    obstacles = {"calls": _no_calls, "instructions": _no_instructions}
    try:
        told = [why for kind in dict.fromkeys(kinds or []) if (why := obstacles[kind]()) is not None]
    except (LauncherBroken, NativePartMissing) as error:
        raise Stop(str(error), ExitStatus.NOTHING_MEASURED) from error
    if told:
        raise Stop("; ".join(told), ExitStatus.NOTHING_MEASURED)


def _no_calls() -> str | None:
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


def _no_instructions() -> str | None:
    try:
        valgrind_version()
    except NoValgrind as error:
        return str(error)
    return None


def _is_good(count: CallCount | InstructionCount | HeapCount | None) -> bool:
    return count is not None and count.status == "ok"


@contextmanager
def _set_up(workloads: Sequence[Workload], timeout_s: float | None, scratch: Path) -> Iterator[list[Workload]]:
    """Those of the workloads whose setup succeeds, as long as it is entered; all are cleaned up after.

    Args:
        timeout_s: seconds that each of these commands may take; None for no limit.
        scratch: a folder for their output.
    """
    begun: list[Workload] = []

    def staged(title: str, command: str | None, workload: Workload) -> bool:
        failure = run_stage(title, command, workload, timeout_s=timeout_s, scratch=scratch)
        if failure is not None:
            print(f"freestone: {workload.name}: {failure.reason}", file=sys.stderr)
        return failure is None

    try:
        ready = []
        for workload in workloads:
            begun.append(workload)
            if staged("setup", workload.stages.setup, workload):
                ready.append(workload)
        yield ready
    finally:
        for workload in reversed(begun):
            staged("cleanup", workload.stages.cleanup, workload)
