"""The lines that put a configuration to use, in a shell, a systemd unit, a Dockerfile, a pod. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from freestone.records.schema import Configuration, Workload
from freestone.reports import system_settings

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

_GUIDE = "docs/guide/deploy.md"

GIVEN = "given as "
"""How the origin of an allocator begins that is known by no name, only by the path that was typed."""


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
    if name.startswith(f"{allocator.name}+"):  # a setting by its own name: its variables can be typed
        escaped = {
            each: re.sub(r"[\\,]|:(?=\w+=)", r"\\\g<0>", said) for each, said in configuration.environment.items()
        }
        name = allocator.name + "".join(f":{each}={said}" for each, said in escaped.items())
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
    """Lines of a Dockerfile; a library of a package is installed, any other is copied from beside the Dockerfile.

    A comment says which images they are for, and what has to lie beside the Dockerfile.
    """
    if not variables:
        return []
    variables = dict(variables)
    package = re.fullmatch(r"package (\S+)", configuration.allocator.origin)
    if "LD_PRELOAD" in variables and package:
        lines = [
            f"# for an image of the release that was measured; one with musl (Alpine): see {_GUIDE}",
            f"RUN apt-get update && apt-get install -y --no-install-recommends {package[1]}",
        ]
    elif "LD_PRELOAD" in variables and configuration.allocator.name != SYSTEM:
        files = configuration.allocator.preload
        lines = [
            f"# for an image with this glibc or a newer one; one with musl (Alpine): see {_GUIDE}",
            f"# first put the library beside the Dockerfile: {shlex.join(['cp', *files, '.'])}",
            f"COPY {_copied([PurePath(file).name for file in files])}",
        ]
        preloaded = variables["LD_PRELOAD"].split(":")
        variables["LD_PRELOAD"] = ":".join(
            _in_folder(file, IMAGE_FOLDER) if file in files else file for file in preloaded
        )
    else:
        lines = [f"# for an image with glibc; these settings are nothing to musl (Alpine): see {_GUIDE}"]
    return [*lines, *(f'ENV {name}="{_in_image(value)}"' for name, value in variables.items())]


def lines(workload: Workload, winner: Configuration, brings_malloc: bool = False) -> list[str]:
    """Lines to be copied that run one program under a configuration; see :func:`lines_for`."""
    return lines_for([workload], winner, brings_malloc=brings_malloc)


def lines_for(workloads: Sequence[Workload], winner: Configuration, *, brings_malloc: bool = False) -> list[str]:
    """Lines to be copied, each behind what it is for.

    Args:
        workloads: programs, one at least; the environment of all is that of the first.
        winner: what they are to run under.
        brings_malloc: whether they are linked against an allocator, so that even the system's must be preloaded.
    """
    given = workloads[0].environment
    # What was measured ran in the workload's environment: without it the lines would start another program.
    variables = _as_measured(given, winner, brings_malloc=brings_malloc)
    hidden = [file for file in winner.allocator.preload if "LD_PRELOAD" in variables and not _is_of_system(file)]
    in_service = where_services_find_it(variables, winner)
    parts = {
        **system_settings.lines(winner),
        "freestone": [run_line(each, winner) for each in workloads],
        "shell": [shell(variables, system_settings.command(winner, each.command)) for each in workloads],
        "install": installing(winner) if hidden else [],
        "systemd": _in_service(workloads, winner, in_service),
        "Dockerfile": [*(dockerfile(winner, variables) if variables else []), *_entrypoints(workloads, winner)],
    }
    parts = {title: lines for title, lines in parts.items() if lines}
    width = max(map(len, parts))
    return [
        f"  {title if not number else '':<{width}}  {line}"
        for title, lines in parts.items()
        for number, line in enumerate(lines)
    ]


def _as_measured(given: Mapping[str, str], winner: Configuration, *, brings_malloc: bool = False) -> dict[str, str]:
    """A program's own variables with those that put a configuration in force; what it preloads itself stands behind."""
    variables = {**given, **environment(winner, brings_malloc=brings_malloc)}
    own = given.get("LD_PRELOAD")
    if own and variables["LD_PRELOAD"] != own:
        variables["LD_PRELOAD"] += f":{own}"
    return variables


def installing(winner: Configuration) -> list[str]:
    """Lines for root that put an allocator's files where every service may read them; none where they lie there."""
    files = [file for file in winner.allocator.preload if not _is_of_system(file)]
    return [shlex.join(["install", "-m", "644", file, _in_folder(file, SERVICE_FOLDER)]) for file in files]


def where_services_find_it(
    variables: Mapping[str, str], winner: Configuration, folder: str = SERVICE_FOLDER
) -> dict[str, str]:
    """The variables with the allocator's files where a service may read them; what else is preloaded stays.

    Args:
        folder: where they lie; :data:`IMAGE_FOLDER` in an image that the lines for a Dockerfile have made.
    """
    if "LD_PRELOAD" not in variables:
        return dict(variables)
    ours = [file for file in winner.allocator.preload if not _is_of_system(file)]
    files = variables["LD_PRELOAD"].split(":")
    moved = [_in_folder(file, folder) if file in ours else file for file in files]
    return {**variables, "LD_PRELOAD": ":".join(moved)}


def _in_service(workloads: Sequence[Workload], winner: Configuration, variables: Mapping[str, str]) -> list[str]:
    """Lines of a unit, with each command where the winner needs something of the process itself; none without any."""
    if not winner.huge_pages_off:
        return systemd(variables) if variables else []
    starts = []
    for workload in workloads:
        words = ["/usr/bin/env", *system_settings.command(winner, workload.command)]
        # A unit knows variables of its own, and quotes as C does.
        quoted = " ".join('"' + _in_unit(word).replace("$", "$$") + '"' for word in words)
        starts.append(f"ExecStart={quoted}")
    return [*systemd(variables), *starts]


def _entrypoints(workloads: Sequence[Workload], winner: Configuration) -> list[str]:
    if not winner.huge_pages_off:
        return []
    return [f"ENTRYPOINT {json.dumps(system_settings.command(winner, each.command))}" for each in workloads]


def more_lines(workload: Workload, winner: Configuration) -> list[str]:
    """Lines for a pod's container and, where all of it are glibc's knobs, for the program's own source."""
    variables = where_services_find_it(_as_measured(workload.environment, winner), winner, IMAGE_FOLDER)
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


def _is_of_system(file: str) -> bool:
    return file.startswith(SYSTEM_FOLDERS)


def _in_folder(file: str, folder: str) -> str:
    return folder + PurePath(file).name


def _in_unit(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return escaped.replace("\n", "\\n").replace("\t", "\\t")


def _in_image(value: str) -> str:
    return re.sub(r'(["\\$])', r"\\\1", value)


def _copied(names: Sequence[str]) -> str:
    """Files beside the Dockerfile and the folder that they go to, as ``COPY`` reads them."""
    words = [*names, IMAGE_FOLDER]
    return json.dumps(words) if any(re.search(r"\s", word) for word in words) else " ".join(words)
