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
from hazards.catalogue import Hazard
from hazards.verdict import Ended, Kind, Verdict, compare, figure_of, judge, worst


def answer(hazard: Hazard, configuration: Configuration, floor: Configuration, built: Path) -> Verdict:
    """All runs of a hazard under one allocator; what it needs of the machine is there meanwhile and put back after.

    Args:
        hazard: what is asked.
        configuration: the allocator.
        floor: glibc, beside which figures are taken that are ratios to it.
        built: the folder of the programs.
    """
    absent = Kind.NOT_APPLICABLE if hazard.not_applicable else Kind.NOT_TRIED
    name = configuration.name
    if not hazard.programs or name in hazard.but or (hazard.only and name not in hazard.only):
        return Verdict(absent, hazard.otherwise)
    first = Path(hazard.programs[0])
    runs = hazard.runs or (first.name if first.suffix == ".sh" else first.stem,)
    try:
        with (
            conditions.met(hazard) as variables,
            ThreadPoolExecutor(len(runs) if hazard.together else 1) as pool,
        ):
            verdicts = pool.map(lambda run: _run(hazard, run, configuration, floor, built, variables), runs)
            return worst([(run.replace("{built}/", ""), verdict) for run, verdict in zip(runs, verdicts, strict=True)])
    except conditions.Unmet as reason:
        return Verdict(Kind.NOT_TRIED, str(reason))


def _run(
    hazard: Hazard, run: str, under: Configuration, floor: Configuration, built: Path, variables: Mapping[str, str]
) -> Verdict:
    def once(configuration: Configuration) -> Ended:
        command, environment = spelled(run, hazard, configuration, built)
        return ended(command, {**variables, **environment}, hazard.limit_s)

    if not hazard.of_glibc:
        return judge(once(under), hazard.limit_s)
    own: list[float] = []
    theirs: list[float] = []
    for _ in range(hazard.rounds):
        for configuration, figures in ((under, own), (floor, theirs)):
            seen = once(configuration)
            number = figure_of(seen)
            if number is None:
                verdict = judge(seen, hazard.limit_s)
                if configuration is floor:
                    return Verdict(Kind.INVALID, f"under glibc: {verdict.figure}")
                return verdict if verdict.bad or verdict.kind is not Kind.PASS else Verdict(Kind.INVALID, "no number")
            figures.append(number)
    return compare(statistics.median(own), statistics.median(theirs), times=hazard.of_glibc, slack=hazard.slack)


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
    """Runs a program with its children until it ends, or ends them all after its time."""
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
        try:
            stdout, stderr = process.communicate(timeout=limit_s)
            status: int | None = process.returncode
        except subprocess.TimeoutExpired:
            _end_group(process.pid)
            stdout, stderr = process.communicate()
            status = None
        # A child that hangs outlives a parent that ended well.
        _end_group(process.pid)
    return Ended(status, stdout, stderr)


def _end_group(leader: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
