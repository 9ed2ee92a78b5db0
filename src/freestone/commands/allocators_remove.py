"""``freestone allocators remove``: what ``freestone allocators add`` has built, taken away again."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from freestone.allocators import peers
from freestone.allocators.peers import PeerError, UnknownPeer
from freestone.commands.status import ExitStatus, Stop


def remove(*names: Annotated[str, Parameter(help="Allocators or projects; 'all' for every one.")]) -> int:
    """Take away what 'freestone allocators add' has built.

    Allocators of the system are not touched. What was measured with one that is removed stays as it is.

    Examples:

        freestone allocators remove tcmalloc
        freestone allocators remove all

    Exit status: 0 fine, 2 wrong use, 5 the cache cannot be written.
    """
    if not any(name.strip(", ") for name in names):
        raise Stop(
            "'allocators remove' takes names; 'freestone allocators remove all' removes every one", ExitStatus.USAGE
        )
    try:
        for peer in peers.chosen(names, variants=True):
            gone = peers.remove(peer.name, peers.root())
            print(f"freestone: {peer.name}: {'removed' if gone else 'was not there'}", file=sys.stderr)
    except UnknownPeer as error:
        raise Stop(str(error), ExitStatus.USAGE) from error
    except PeerError as error:
        raise Stop(str(error), ExitStatus.STORE) from error
    return ExitStatus.FINE
