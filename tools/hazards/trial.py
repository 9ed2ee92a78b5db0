"""One hazard under one allocator."""

from __future__ import annotations

import os
import shlex
import signal
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from freestone.records.schema import Configuration
from hazards import conditions
from hazards.catalogue import Hazard, Run
from hazards.verdict import Ended, Kind, Verdict, compare, figure_of, judge, worst

LOOK_S = 5.0
"""How often a program is looked at that has not ended in its time by the clock."""
WORK_LEAST_S = 0.05
"""Processor time from look to look below which it waits: a program that works gets that beside a hundred others."""


def answer(hazard: Hazard, configuration: Configuration, floor: Configuration, built: Path) -> Verdict:
    """All runs of a hazard under one allocator; the worst counts.

    Args:
        hazard: what is asked.
        configuration: the allocator.
        floor: the allocator that the hazard names, beside which figures are taken that are ratios to it.
        built: the folder of the programs.
    """
    absent = Kind.NOT_APPLICABLE if hazard.not_applicable else Kind.NOT_TRIED
    name = configuration.name
    if not hazard.programs or name in hazard.but or (hazard.only and name not in hazard.only):
        return Verdict(absent, hazard.otherwise)
    verdicts = each_run(hazard, [(run, configuration) for run in hazard.runs], floor, built)
    return worst(
        [(run.command.replace("{built}/", ""), verdict) for run, verdict in zip(hazard.runs, verdicts, strict=True)]
    )


def each_run(
    hazard: Hazard, runs: Sequence[tuple[Run, Configuration]], floor: Configuration, built: Path
) -> list[Verdict]:
    """Runs of a hazard, each under its allocator; what they need of the machine is there meanwhile, put back after."""
    try:
        with (
            conditions.met(hazard) as variables,
            ThreadPoolExecutor(max(1, len(runs)) if hazard.together else 1) as pool,
        ):
            return list(pool.map(lambda one: _run(hazard, one[0].command, one[1], floor, built, variables), runs))
    except conditions.Unmet as reason:
        return [Verdict(Kind.NOT_TRIED, str(reason))] * len(runs)


def _run(
    hazard: Hazard, run: str, under: Configuration, floor: Configuration, built: Path, variables: Mapping[str, str]
) -> Verdict:
    def once(configuration: Configuration) -> Ended:
        command, environment = spelled(run, hazard, configuration, built)
        return ended(command, {**variables, **environment}, hazard.limit_s)

    if not hazard.times:
        return judge(once(under), hazard.limit_s)
    own: list[float] = []
    theirs: list[float] = []
    for _ in range(hazard.rounds):
        for configuration, figures in ((under, own), (floor, theirs)):
            seen = once(configuration)
            number = figure_of(seen)
            if number is None:
                verdict = judge(seen, hazard.limit_s)
                if verdict.kind is Kind.PASS:
                    verdict = Verdict(Kind.INVALID, "no number")
                if configuration is floor and under is not floor:
                    # Nothing was seen of the allocator that would be its fault.
                    return Verdict(Kind.NOT_TRIED, f"{hazard.beside} beside it: {verdict.kind.value}: {verdict.figure}")
                return verdict
            figures.append(number)
    return compare(
        statistics.median(own), statistics.median(theirs), times=hazard.times, slack=hazard.slack, beside=hazard.beside
    )


def spelled(run: str, hazard: Hazard, configuration: Configuration, built: Path) -> tuple[list[str], dict[str, str]]:
    """Command and variables of a run: a program that was built is meant by its name alone, others are on PATH.

    ``{built}`` stands for the folder of the programs, ``{file}`` for the allocator's library.
    """
    allocator = configuration.allocator
    environment = {
        **configuration.environment,
        "HAZARD_NAME": configuration.name,
        "HAZARD_FILE": allocator.file or "",
        "HAZARD_BUILT": str(built),
        "HAZARD_PRELOAD": ":".join(allocator.preload),
    }
    if hazard.preload:
        environment["LD_PRELOAD"] = ":".join(allocator.preload)
    words = [word.format(built=built, file=allocator.file or "") for word in shlex.split(run)]
    while words and "=" in words[0]:
        key, value = words.pop(0).split("=", 1)
        environment[key] = value
    scripts = {Path(name).name: name for name in hazard.programs}
    if words[0] in scripts:
        words[0] = str(Path(__file__).resolve().parents[2] / scripts[words[0]])
    elif (built / words[0]).exists():
        words[0] = str(built / words[0])
    return words, environment


def ended(command: Sequence[str], variables: Mapping[str, str], limit_s: float) -> Ended:
    """Runs a program with its children until it ends, or ends them all after its time.

    The time is a processor's, as far as the program works: a machine with other work stretches all of it. A program
    that waits has to end in the same time by the clock.
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("LD_", "MALLOC_"))}
    environment |= {"LC_ALL": "C", **variables}
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        status: int | None = None
        wait_s, worked_before = limit_s, 0.0
        while True:
            try:
                stdout, stderr = process.communicate(timeout=wait_s)
                status = process.returncode
                break
            except subprocess.TimeoutExpired:
                worked = worked_s(process.pid)
                if not goes_on(worked_before, worked, limit_s):
                    _end_group(process.pid)
                    stdout, stderr = process.communicate()
                    break
                wait_s, worked_before = LOOK_S, worked
            except KeyboardInterrupt:  # a session of its own: the terminal's signal does not reach it
                _end_group(process.pid)
                raise
        # A child that hangs outlives a parent that ended well.
        _end_group(process.pid)
    return Ended(status, stdout, stderr)


def goes_on(before: float, worked: float, limit_s: float) -> bool:
    """After its time by the clock: does it still work, and has it had less than its time of a processor?"""
    return before + WORK_LEAST_S <= worked < limit_s


def worked_s(group: int) -> float:
    """Processor time that the processes of a group have had, with children they have waited for."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            after_name = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if int(after_name[2]) == group:
                ticks += sum(map(int, after_name[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _end_group(leader: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
