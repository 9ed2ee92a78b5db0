"""``freestone run``: a program under an allocator, in place of this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from freestone import native
from freestone.allocators import BrokenLibrary, bundled
from freestone.commands import program
from freestone.commands.run_print import Place, print_lines
from freestone.commands.status import ExitStatus, Stop

LIBRARY = "libfreestone.so"
OPTIONS = "FREESTONE_OPTIONS"
IDENTITY = b"freestone_identity"
"""The symbol by which every build of libfreestone is known."""
MOST_GUARDED = 1_000_000_000


@dataclass(frozen=True)
class _Preload:
    """An allocator as a program is given it."""

    title: str
    files: list[str]
    environment: Mapping[str, str]


def run(
    *command: Annotated[str, Parameter(help="The program and its arguments, after --.")],
    allocator: Annotated[
        str | None,
        Parameter(
            name=["--allocator", "-a"],
            help="A name or library path, with settings as in glibc:MALLOC_ARENA_MAX=2. Default: libfreestone.",
        ),
    ] = None,
    harden: Annotated[
        bool, Parameter(negative="", help="libfreestone checks every block: for tests, and where safety is worth it.")
    ] = False,
    guard: Annotated[
        str | None,
        Parameter(
            help="libfreestone puts one allocation in so many between untouchable pages, a number or auto: "
            "for production."
        ),
    ] = None,
    place: Annotated[
        Place | None,
        Parameter(name="--print", help="Print the lines that put the allocator in force there, and run nothing."),
    ] = None,
) -> int:
    """Run a program under libfreestone, or another allocator.

    The program takes the place of freestone: same process, same terminal, its own exit status. A program that
    the allocator cannot serve (static, set-user-ID, or with a malloc of its own) runs all the same, after one line that
    says so; one for another C library (musl) runs without the preload, and so do the programs that it starts. A program
    for another C library that is started by one that is served inherits the preload and does not start.

    libfreestone's settings are keys of FREESTONE_OPTIONS, as in retain_mib=256: docs/reference/options.md lists them.

    Examples:

        freestone run -- redis-server --port 7000
        freestone run -a jemalloc:MALLOC_CONF=background_thread:true -- ./server
        freestone run --harden -- ./program its arguments
        freestone run --guard auto -- ./server
        FREESTONE_OPTIONS=retain_mib=256,retain_ms=5000 freestone run -- ./program
        eval "$(freestone run --print shell)"
        freestone run -a jemalloc:MALLOC_CONF=background_thread:true --print systemd

    Exit status: the program's own; 2 wrong use, 3 libfreestone is not installed or cannot be preloaded, 126 or 127 the
    program cannot be executed or found.
    """
    if place is not None:
        if command or harden or guard is not None:
            raise Stop("--print runs nothing; give the allocator and its settings with -a alone", ExitStatus.USAGE)
        return print_lines("freestone" if allocator is None else allocator, place)
    preload = _freestone() if allocator is None else _other(allocator)
    environment = {**os.environ, **preload.environment}
    mode = _mode(harden, guard)
    if mode:
        _require_freestone(preload, "--harden" if harden else "--guard")
        environment[OPTIONS] = ",".join(filter(None, [environment.get(OPTIONS), mode]))
    program.require_last(command)
    executable = program.require(command, environment, verb="run")
    obstacle = program.obstacle(executable, Path(preload.files[0]), preload.title)
    if obstacle is not None:
        print(f"freestone: {executable} {obstacle.why}", file=sys.stderr)
    if obstacle is None or not obstacle.fatal:
        environment["LD_PRELOAD"] = ":".join(filter(None, [*preload.files, environment.get("LD_PRELOAD", "")]))
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(executable, list(command), environment)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise Stop(f"program '{executable}' cannot be executed: {why}", ExitStatus.NOT_EXECUTABLE) from error


def _freestone() -> _Preload:
    """libfreestone as it was installed, found without a look at the other allocators."""
    try:
        return _Preload("libfreestone", [str(bundled(LIBRARY))], {})
    except (native.NativePartMissing, BrokenLibrary) as error:
        raise Stop(str(error), ExitStatus.NOTHING_MEASURED) from error


def _other(text: str) -> _Preload:
    from freestone.allocators import AllocatorError, configurations, variables  # late: the catalogue takes time to read

    try:
        found = configurations([text])
    except AllocatorError as error:
        raise Stop(str(error), ExitStatus.USAGE) from error
    if len(found) != 1:
        raise Stop(f"-a takes one allocator, not {len(found)}: '{text}'", ExitStatus.USAGE)
    (configuration,) = found
    for line in variables.unread(found):
        print(f"freestone: {line}", file=sys.stderr)
    chosen = configuration.allocator
    title = "libfreestone" if chosen.name == "freestone" else chosen.title
    return _Preload(title, chosen.preload, configuration.environment)


def _mode(harden: bool, guard: str | None) -> str:
    """What a mode of libfreestone is called among its options; nothing where none was asked for."""
    if harden and guard is not None:
        raise Stop("--harden checks every block already; leave out --guard", ExitStatus.USAGE)
    if harden:
        return "harden=1"
    if guard is None:
        return ""
    if guard != "auto" and not (guard.isascii() and guard.isdigit() and 0 < int(guard[:11]) <= MOST_GUARDED):
        raise Stop(f"--guard takes a number from 1 to {MOST_GUARDED}, or auto, not '{guard}'", ExitStatus.USAGE)
    return f"guard={guard}"


def _require_freestone(preload: _Preload, option: str) -> None:
    """Nobody else understands libfreestone's modes, and silence would be taken for safety."""
    if IDENTITY not in Path(preload.files[0]).read_bytes():
        raise Stop(f"{option} is a mode of libfreestone; leave out -a {preload.title}, or {option}", ExitStatus.USAGE)
