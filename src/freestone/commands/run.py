"""``freestone run``: a program under libfreestone, in place of this process."""

from __future__ import annotations

import os
import sys
from typing import Annotated, NoReturn

from cyclopts import Parameter

from freestone import native
from freestone.commands import program
from freestone.commands.status import ExitStatus, Stop

LIBRARY = "libfreestone.so"


def run(*command: Annotated[str, Parameter(help="The program and its arguments, after --.")]) -> NoReturn:
    """Run a program under libfreestone.

    The program takes the place of freestone: same process, same terminal, its own exit status. A program that
    libfreestone cannot serve (static, set-user-ID, or with a malloc of its own) runs all the same, after one line that
    says so; one for another C library (musl) runs without the preload, and so do the programs that it starts. A program
    for another C library that is started by one that is served inherits the preload and does not start.

    Examples:

        freestone run -- redis-server --port 7000
        freestone run -- python3 program.py
        FREESTONE_OPTIONS=... freestone run -- ./program

    Exit status: the program's own; 2 wrong use, 3 libfreestone is not installed, 126 or 127 the program cannot be
    executed or found.
    """
    executable = program.require(command, os.environ, verb="run")
    try:
        library = native.path(LIBRARY)
    except native.NativePartMissing as error:
        raise Stop(str(error), ExitStatus.NOTHING_MEASURED) from error
    obstacle = program.obstacle(executable, library)
    environment = dict(os.environ)
    if obstacle is not None:
        print(f"freestone: {executable} {obstacle.why}", file=sys.stderr)
    if obstacle is None or not obstacle.fatal:
        environment["LD_PRELOAD"] = ":".join(filter(None, [str(library), os.environ.get("LD_PRELOAD", "")]))
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(executable, list(command), environment)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise Stop(f"program '{executable}' cannot be executed: {why}", ExitStatus.NOT_EXECUTABLE) from error
