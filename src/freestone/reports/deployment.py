"""How the winner of a comparison is put to use: the lines for a shell, a systemd unit, a Dockerfile. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from freestone.records.schema import Cell, Configuration, Experiment, Ratio, Summary, Workload
from freestone.reports import quantities, system_settings

SYSTEM = "glibc"
"""The allocator that is in force where nothing is preloaded."""

IMAGE_FOLDER = "/usr/local/lib/"
"""Where a library that no package brings lies in a container's image."""

SERVICE_FOLDER = "/usr/lib/"
"""Where a service finds a library, whoever it runs as and whatever its unit hides from it."""

SYSTEM_FOLDERS = ("/usr/", "/lib/", "/lib32/", "/lib64/")
"""What lies below these can be loaded by every service; a home, a clone or /tmp may be hidden from it."""

_MALLOPT = {
    "MALLOC_ARENA_MAX": "M_ARENA_MAX",
    "MALLOC_MMAP_MAX_": "M_MMAP_MAX",
    "MALLOC_MMAP_THRESHOLD_": "M_MMAP_THRESHOLD",
    "MALLOC_TOP_PAD_": "M_TOP_PAD",
    "MALLOC_TRIM_THRESHOLD_": "M_TRIM_THRESHOLD",
}
"""glibc's variables and the parameters of mallopt that do the same."""

_INT_MAX = 2**31 - 1
"""What mallopt takes; ``M_TRIM_THRESHOLD`` of -1 is never."""

GIVEN = "given as "
"""How the origin of an allocator begins that is known by no name, only by the path that was typed."""


def told(
    experiment: Experiment,
    summary: Summary,
    *,
    brings_malloc: bool = False,
    level: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
) -> list[str]:
    """Lines that end a table: how to use what is really best, or that nothing is.

    Args:
        experiment: with one workload; of several there is no one answer, and no line, nor of too few rounds.
        summary: of its records.
        brings_malloc: whether the program is linked against an allocator, so that even the system's must be preloaded.
        level: workload -> aspect -> who cannot be told from the best there; they are named beside it.
    """
    ratios = [ratio for cell in summary.cells for ratio in cell.ratio.values()]
    if len(experiment.workloads) != 1 or not any(quantities.is_known(ratio) for ratio in ratios):
        return []
    (workload,) = experiment.workloads
    best = summary.best.get(workload.name, {})
    for aspect in ("time", "peak memory"):
        if aspect in best:
            winner = next(each for each in experiment.configurations if each.name == best[aspect])
            others = (level or {}).get(workload.name, {}).get(aspect, [])
            whose = f"; the lines are for {winner.name}" if others else ""
            lead = f"To use it, {choice(workload, summary, aspect, winner.name, others)}{whose}:"
            return [lead, *lines(workload, winner, brings_malloc)]
    if brings_malloc:
        # By itself it runs on its own malloc: who changes nothing has not what was measured.
        held = next(each for each in experiment.configurations if each.name == summary.baseline)
        lead = (
            f"To use it: no allocator is really better than {summary.baseline} here. The program brings a malloc of "
            f"its own, which was not measured; to have {summary.baseline} in its place:"
        )
        return [lead, *lines(workload, held, brings_malloc=True)]
    return [f"To use it: there is nothing to change; no allocator is really better than {summary.baseline} here."]


def choice(workload: Workload, summary: Summary, aspect: str, winner: str, level: Sequence[str]) -> str:
    """A winner with its price, and those that are level with it with theirs: the choice is the reader's."""
    cells = {cell.configuration: cell for cell in summary.cells if cell.workload == workload.name}
    first, *others = (f"{name} ({price(workload, cells[name], summary.baseline)})" for name in (winner, *level))
    return ", or ".join([first, *others]) + (f", not told apart from it in {aspect}" if others else "")


def run_line(workload: Workload, configuration: Configuration) -> str:
    """The line for a shell that runs a program under an allocator by ``freestone run``, as it was measured."""
    run = ["freestone", "run", "-a", as_typed(configuration), "--", *workload.command]
    return shell(workload.environment, system_settings.command(configuration, run))


def as_typed(configuration: Configuration) -> str:
    """A configuration as every command line of ``freestone`` reads it, from whatever folder.

    Its name will do where the catalogue has the allocator; one that was given by a path needs the path.
    """
    allocator = configuration.allocator
    name = configuration.name.removesuffix(system_settings.suffix(configuration))
    if not allocator.origin.startswith(GIVEN) or allocator.file is None:
        return name
    file = re.sub(r"([\\,:])", r"\\\1", allocator.file)
    return f"{allocator.name}={file}{name.removeprefix(allocator.name)}"


def environment(configuration: Configuration, *, brings_malloc: bool = False) -> dict[str, str]:
    """The variables that put a configuration in force."""
    needed = configuration.allocator.name != SYSTEM or brings_malloc
    preload = {"LD_PRELOAD": ":".join(configuration.allocator.preload)} if needed else {}
    return {**preload, **configuration.environment}


def shell(variables: Mapping[str, str], command: list[str]) -> str:
    """A line for a POSIX shell."""
    return " ".join([*(f"{name}={shlex.quote(value)}" for name, value in variables.items()), shlex.join(command)])


def systemd(variables: Mapping[str, str]) -> list[str]:
    """Lines of a unit's or a drop-in's ``[Service]`` (systemd.exec(5), "Environment=": C escapes, ``%`` doubled)."""
    return ["[Service]", *(f'Environment="{name}={_in_unit(value)}"' for name, value in variables.items())]


def dockerfile(configuration: Configuration, variables: Mapping[str, str]) -> list[str]:
    """Lines of a Dockerfile; a library of a package is installed, any other is copied from beside the Dockerfile."""
    variables = dict(variables)
    lines = []
    file = configuration.allocator.file or ""
    package = re.fullmatch(r"package (\S+)", configuration.allocator.origin)
    if "LD_PRELOAD" in variables and package:
        lines.append(f"RUN apt-get update && apt-get install -y --no-install-recommends {package[1]}")
    elif "LD_PRELOAD" in variables and configuration.allocator.name != SYSTEM:
        lines.append(f"COPY {PurePath(file).name} {IMAGE_FOLDER}")
        variables["LD_PRELOAD"] = IMAGE_FOLDER + PurePath(file).name
    return [*lines, *(f'ENV {name}="{_in_image(value)}"' for name, value in variables.items())]


def lines(workload: Workload, winner: Configuration, brings_malloc: bool = False) -> list[str]:
    """Lines to be copied, each behind what it is for; arguments are those of :func:`told`."""
    # What was measured ran in the workload's environment: without it the lines would start another program.
    variables = {**workload.environment, **environment(winner, brings_malloc=brings_malloc)}
    own = workload.environment.get("LD_PRELOAD")
    if own and variables["LD_PRELOAD"] != own:
        variables["LD_PRELOAD"] += f":{own}"  # it stood behind the allocator in every run
    hidden = [file for file in winner.allocator.preload if "LD_PRELOAD" in variables and not _is_of_system(file)]
    in_service = variables
    if hidden:
        files = [_installed(file) if file in hidden else file for file in winner.allocator.preload]
        in_service = {**variables, "LD_PRELOAD": ":".join(files)}
    parts = {
        **system_settings.lines(winner),
        "freestone": [run_line(workload, winner)],
        "shell": [shell(variables, system_settings.command(winner, workload.command))],
        "install": [shlex.join(["install", "-m", "644", file, _installed(file)]) for file in hidden],
        "systemd": _in_service(workload, winner, in_service),
        "Dockerfile": [*dockerfile(winner, variables), *_entrypoint(workload, winner)],
    }
    parts = {title: lines for title, lines in parts.items() if lines}
    width = max(map(len, parts))
    return [
        f"  {title if not number else '':<{width}}  {line}"
        for title, lines in parts.items()
        for number, line in enumerate(lines)
    ]


def _in_service(workload: Workload, winner: Configuration, variables: Mapping[str, str]) -> list[str]:
    """Lines of a unit, with the command where the winner needs something of the process itself; none without any."""
    if not winner.huge_pages_off:
        return systemd(variables) if variables else []
    words = ["/usr/bin/env", *system_settings.command(winner, workload.command)]
    # A unit knows variables of its own, and quotes as C does.
    quoted = " ".join('"' + _in_unit(word).replace("$", "$$") + '"' for word in words)
    return [*systemd(variables), f"ExecStart={quoted}"]


def _entrypoint(workload: Workload, winner: Configuration) -> list[str]:
    if not winner.huge_pages_off:
        return []
    return [f"ENTRYPOINT {json.dumps(system_settings.command(winner, workload.command))}"]


def more_lines(workload: Workload, winner: Configuration) -> list[str]:
    """Lines for a pod's container and, where all of it are glibc's knobs, for the program's own source."""
    variables = {**workload.environment, **environment(winner)}
    if "LD_PRELOAD" in variables:
        files = [file if _is_of_system(file) else _installed(file) for file in winner.allocator.preload]
        variables["LD_PRELOAD"] = ":".join(files)
    calls = c_calls(winner)
    if calls or (winner.allocator.name == SYSTEM and not winner.environment):
        calls = [*calls, *system_settings.c_calls(winner)]
    pod = kubernetes(variables) if variables else []
    if winner.huge_pages_off:
        pod = [f"command: {json.dumps(system_settings.command(winner, workload.command))}", *pod]
    parts = {"Kubernetes": pod, "C": calls}
    return [
        f"  {title if not number else '':<10}  {line}"
        for title, lines in parts.items()
        for number, line in enumerate(lines)
    ]


def kubernetes(variables: Mapping[str, str]) -> list[str]:
    """Lines of a container in a pod's template; JSON's strings are YAML's."""
    return ["env:", *(f"- {{name: {name}, value: {json.dumps(value)}}}" for name, value in variables.items())]


def c_calls(winner: Configuration) -> list[str]:
    """Calls at the start of ``main`` that do what the settings do; none where some of them have no such call."""
    if winner.allocator.name != SYSTEM or not winner.environment.keys() <= _MALLOPT.keys():
        return []
    calls = [
        f"mallopt({_MALLOPT[name]}, {-1 if int(value) > _INT_MAX else int(value)});"
        for name, value in winner.environment.items()
        if value.isdigit()
    ]
    return ["#include <malloc.h>", *calls] if len(calls) == len(winner.environment) > 0 else []


def price(workload: Workload, cell: Cell, baseline: str) -> str:
    """What it gains and what it costs, against the baseline."""
    parts = [("time", cell.ratio.get(workload.time)), ("peak memory", cell.ratio.get("peak_rss_kib"))]
    return ", ".join(f"{title} {_times(ratio, baseline)}" for title, ratio in parts if ratio is not None)


def _times(ratio: Ratio, baseline: str) -> str:
    return f"{quantities.ratio_number(ratio)}× {baseline}" if ratio.different else "no difference seen"


def _is_of_system(file: str) -> bool:
    return file.startswith(SYSTEM_FOLDERS)


def _installed(file: str) -> str:
    return SERVICE_FOLDER + PurePath(file).name


def _in_unit(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return escaped.replace("\n", "\\n").replace("\t", "\\t")


def _in_image(value: str) -> str:
    return re.sub(r'(["\\$])', r"\\\1", value)
