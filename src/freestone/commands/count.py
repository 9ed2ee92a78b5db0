"""``freestone count``: system calls, instructions and requests to malloc of what was measured, in runs of their own."""

from __future__ import annotations

import json as json_format
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from freestone import suites
from freestone.commands import count_calls, count_instructions, count_runs, one_folder, terminal
from freestone.commands.count_calls import CallLedger
from freestone.commands.count_instructions import InstructionLedger
from freestone.commands.durations import Limit
from freestone.commands.status import ExitStatus, Stop
from freestone.experiments.plan import PlanError
from freestone.native import NativePartMissing
from freestone.records import store
from freestone.records.schema import Experiment
from freestone.records.store import StoreError
from freestone.suites import SuiteError
from freestone.trials import LauncherBroken, NoCounter, NoValgrind


def count(
    results: Annotated[Path, Parameter(help="A results folder of freestone compare or freestone bench.")],
    /,
    *,
    calls: Annotated[bool, Parameter(negative="", help="System calls alone, by strace.")] = False,
    instructions: Annotated[
        bool, Parameter(negative="", help="Instructions, memory references and requests to malloc alone, by valgrind.")
    ] = False,
    only: Annotated[
        list[str] | None,
        Parameter(negative="", help="Workloads whose name matches this pattern, as in 'loop-*'. May be repeated."),
    ] = None,
    timeout: Annotated[
        Limit,
        Parameter(help="Seconds after which a run is ended. Default: the experiment's; 600 under valgrind."),
    ] = None,
    json: Annotated[bool, Parameter(negative="", help="Print the counts as JSON instead of tables.")] = False,
) -> int:
    """Count what each workload does under each configuration: system calls, instructions, requests to malloc.

    Each is run once more, under strace and under valgrind, and never timed: what counts slows them down. Without
    --calls or --instructions both are counted, as far as the tools are here.

    System calls are those about memory, futexes and barriers. Instructions, data references, cache misses and the
    functions that execute most are counted by cachegrind, which leaves the allocator in force; what is asked of malloc
    by memcheck in malloc's place, once, as it is the same under every allocator. Valgrind is slow, so workloads of a
    suite are counted at the suite's quick size.

    The counts are written into the results folder as calls.json and instructions.json, one by one, and freestone
    report shows them. Counts of other workloads that are there already stay.

    Examples:

        freestone count results/20261120T131500Z-faults
        freestone count results/20261120T131500Z-faults --calls --only 'loop-128K-*'
        freestone count results/20261120T131500Z-parallel --instructions

    Exit status: 0 fine, 2 wrong use, 3 nothing could be counted, 4 not everything could, 5 results could not be read or
    written.
    """
    try:
        experiment = store.read_experiment(one_folder.required(results))
        names = suites.matching([each.name for each in experiment.workloads], only or [])
        chosen = [each for each in experiment.workloads if each.name in names]
        ledgers, missing = _ledgers(results, experiment, calls or not instructions, instructions or not calls)
        suites.prepare(chosen)
        with (
            tempfile.TemporaryDirectory(prefix=f"freestone-{os.getpid()}-") as scratch,
            count_runs.set_up(chosen, timeout or experiment.timeout_s, Path(scratch)) as ready,
        ):
            runs = [run for each in ledgers for run in each.runs(ready, timeout, Path(scratch))]
            good = [*count_runs.take(runs), *(False for each in chosen if each not in ready)]
    except StoreError as error:
        raise Stop(str(error), ExitStatus.STORE) from error
    except (PlanError, SuiteError) as error:
        raise Stop(str(error), ExitStatus.USAGE) from error
    except (NoCounter, NoValgrind, LauncherBroken, NativePartMissing) as error:
        raise Stop(str(error), ExitStatus.NOTHING_MEASURED) from error
    if json:
        counts = {name: _as_json(ledgers, kind) for name, kind in _KINDS.items()}
        print(json_format.dumps(counts, indent=2, ensure_ascii=False))
    else:
        width, colour, plain = terminal.width(), terminal.has_colour(sys.stdout), terminal.is_ascii(sys.stdout)
        print("\n\n".join(each.text(width=width, colour=colour, ascii_only=plain) for each in ledgers))
    if not any(good):
        return ExitStatus.NOTHING_MEASURED
    # What nobody named is counted where it can be.
    lacking = missing and (calls or instructions)
    return ExitStatus.PARTLY_MEASURED if lacking or not all(good) else ExitStatus.FINE


_KINDS: Final[dict[str, type[CallLedger | InstructionLedger]]] = {
    "calls": CallLedger,
    "instructions": InstructionLedger,
}


def _ledgers(
    folder: Path, experiment: Experiment, calls: bool, instructions: bool
) -> tuple[list[CallLedger | InstructionLedger], bool]:
    """What is going to be counted, and whether a tool for some of it is missing, which is named.

    Raises:
        StoreError: earlier counts are damaged: told before hours are spent.
        Stop: nothing can be counted here.
    """
    asked = (("calls", calls, count_calls.obstacle), ("instructions", instructions, count_instructions.obstacle))
    wanted = {name: obstacle for name, is_asked, obstacle in asked if is_asked}
    obstacles = {name: why for name, obstacle in wanted.items() if (why := obstacle()) is not None}
    if len(obstacles) == len(wanted):
        raise Stop("; ".join(obstacles.values()), ExitStatus.NOTHING_MEASURED)
    for why in obstacles.values():
        print(f"freestone: {why}", file=sys.stderr)
    return [_KINDS[name](folder, experiment) for name in wanted if name not in obstacles], bool(obstacles)


def _as_json(ledgers: Sequence[CallLedger | InstructionLedger], kind: type[CallLedger | InstructionLedger]) -> object:
    """What one of them holds; None where nothing of the kind was counted."""
    found = next((each for each in ledgers if isinstance(each, kind)), None)
    return None if found is None else json_format.loads(found.counts.model_dump_json())
