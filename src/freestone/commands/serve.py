"""``freestone serve``: a local page over all results."""

from __future__ import annotations

import errno
import os
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from freestone.commands.options import Whole
from freestone.commands.status import ExitStatus, Stop

if TYPE_CHECKING:  # what reads results is large, and the help needs none of it
    from freestone.browse.server import Server

PORT: Final = 7233

LIBRARIES: Final = ("jinja2", "markupsafe")
"""What the page needs of those of the figures."""


def serve(
    results: Annotated[
        Path | None, Parameter(help="The folder that holds all results. Default: results.", show_default=False)
    ] = None,
    /,
    *,
    port: Annotated[Whole, Parameter(help="The port on 127.0.0.1; 0 takes one that is free. Default: 7233.")] = None,
    open_page: Annotated[bool, Parameter(name="--open", negative="", help="Open the page in the browser.")] = False,
) -> int:
    """Show all results on a local page: searched as you type, each with its report, until Ctrl-C.

    What is measured meanwhile is there when the page is loaded again. Nothing is written. Only this machine reaches the
    page, at 127.0.0.1; whoever has an account here can read it.

    Examples:

        freestone serve --open
        freestone serve other-results --port 8080

    Exit status: 0 ended by Ctrl-C, 2 wrong use or a port that is taken, 5 the folder cannot be read.
    """
    from freestone.commands import program

    place = Path("results") if results is None else results
    if results is not None and not os.path.isdir(place):
        said = "is no folder" if os.path.lexists(place) else "does not exist"
        raise Stop(f"{place} {said}; give the folder that holds all results", ExitStatus.STORE)
    if any(find_spec(name) is None for name in LIBRARIES):
        from freestone.records import installation

        raise Stop(f"the page needs: {installation.to_get('figures', LIBRARIES)}", ExitStatus.STORE)
    with _server(place, PORT if port is None else port, program.tool_as_typed()) as server:
        print(f"All results of {place}: {server.address} (Ctrl-C ends it)", flush=True)
        if open_page:
            threading.Thread(target=_open, args=(server.address,), daemon=True).start()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("freestone: the page is closed", file=sys.stderr)
    return ExitStatus.FINE


def _server(place: Path, port: int, tool: str) -> Server:
    from freestone.browse.server import Server

    if not 0 <= port < 1 << 16:
        raise Stop(f"--port takes 0 to 65535, not {port}", ExitStatus.USAGE)
    try:
        return Server(place, port, tool)
    except OSError as error:
        why = {
            errno.EADDRINUSE: f"port {port} is taken; --port 0 takes one that is free",
            errno.EACCES: f"port {port} is for the system's own; give one from 1024 on, or --port 0",
        }
        said = why.get(error.errno or 0, f"cannot listen on port {port}: {error.strerror}")
        raise Stop(said, ExitStatus.USAGE) from error


def _open(address: str) -> None:
    import webbrowser  # late: it asks what browsers there are

    if not webbrowser.open(address):
        print(f"freestone: no browser is found here; open {address}", file=sys.stderr, flush=True)
