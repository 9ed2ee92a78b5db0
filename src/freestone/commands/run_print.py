"""``freestone run --print``: the lines that put an allocator in force in a shell, a unit, an image or the machine."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Literal

from freestone.commands.status import ExitStatus, Stop

if TYPE_CHECKING:
    from freestone.records.schema import Configuration

Place = Literal["shell", "systemd", "docker", "kubernetes", "ld.so.preload"]


def print_lines(allocator: str, place: Place) -> ExitStatus:
    """Print the lines for one place; nothing is changed.

    Raises:
        Stop: no such allocator, one that needs nothing to be set, or a setting that it does not take.
    """
    from freestone.allocators import AllocatorError, configurations
    from freestone.reports import deployment

    try:
        found, *more = configurations([allocator])
    except AllocatorError as error:
        raise Stop(str(error), ExitStatus.USAGE) from error
    if more:
        raise Stop(f"-a takes one allocator, not {1 + len(more)}: '{allocator}'", ExitStatus.USAGE)
    variables = deployment.environment(found)
    if not variables:
        raise Stop(f"{found.name} is what runs where nothing is set", ExitStatus.USAGE)
    _require_settings(found)
    in_service = deployment.where_services_find_it(variables, found)
    installed = deployment.installing(found)
    first = [f"# first, as root: {line}" for line in installed]
    parts: dict[Place, list[str]] = {
        "shell": [
            "# for every program that this shell starts",
            *(f"export {name}={shlex.quote(value)}" for name, value in variables.items()),
        ],
        "systemd": ["# systemctl edit UNIT, then restart it", *first, *deployment.systemd(in_service)],
        "docker": deployment.dockerfile(found, variables),
        "kubernetes": [
            "# of a container, whose image has the lines for a Dockerfile",
            *deployment.kubernetes(deployment.where_services_find_it(variables, found, deployment.IMAGE_FOLDER)),
        ],
        "ld.so.preload": _whole_machine(in_service, first, sorted(found.environment)),
    }
    print("\n".join(parts[place]))
    return ExitStatus.FINE


def _require_settings(configuration: Configuration) -> None:
    """Refuse what the allocator would pass over, by what it says itself; tell what it does not seem to read.

    Raises:
        Stop: a setting would not be in force (2).
    """
    from freestone.allocators import variables, verification
    from freestone.trials import setting_complaint

    settings, name = configuration.environment, configuration.allocator.name
    if not settings:
        return
    refused = setting_complaint.complaint(verification.said(configuration.allocator, settings), settings)
    if refused is not None:
        told = refused.removeprefix("freestone: ")
        raise Stop(f"a setting would not be in force: {told}", ExitStatus.USAGE)
    complaints = variables.unread([configuration])
    known = variables.names(configuration.allocator)
    told_of = {variable for variable in settings if any(f":{variable}=" in line for line in complaints)}
    foreign = sorted(set(settings) - known - told_of) if known else []
    if foreign:
        complaints.append(
            f"{', '.join(foreign)}: {name} reads no variable of that name; it is set for the program alone"
        )
    for line in complaints:
        print(f"freestone: {line}", file=sys.stderr)


def _whole_machine(variables: dict[str, str], first: list[str], settings: list[str]) -> list[str]:
    """What it takes for every program of a machine, and what speaks against it."""
    files = variables.get("LD_PRELOAD")
    if files is None:
        return ["# /etc/ld.so.preload names libraries alone: settings of the system's malloc go into the environment"]
    beside = [f"# {', '.join(settings)}: not here, a file of libraries has no settings"] if settings else []
    return [
        "# /etc/ld.so.preload: every program of this machine, those of root and of the package manager too.",
        "# A file that is gone is a warning of each program; programs of another C library (musl) do not start, and",
        "# with a library for a newer glibc than this machine's none does.",
        "# Keep a root shell open, in which 'echo > /etc/ld.so.preload' takes it back.",
        *first,
        *beside,
        *(f"echo {shlex.quote(file)} >> /etc/ld.so.preload" for file in files.split(":")),
    ]
