"""``freestone allocators add``: current versions of other allocators, built here."""

from __future__ import annotations

import json as json_format
import os
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from freestone.allocators import peers
from freestone.allocators.peers import Built, CacheError, Peer, PeerError, UnknownPeer, Unreachable
from freestone.commands.options import Whole
from freestone.commands.status import ExitStatus, Stop
from freestone.commands.terminal import say
from freestone.experiments import Interruption


def add(
    *names: Annotated[str, Parameter(help="Allocators or projects. Default: all that can be built.")],
    jobs: Annotated[
        Whole, Parameter(name=["--jobs", "-j"], help="Compilers at a time. Default: one for each CPU.")
    ] = None,
    json: Annotated[bool, Parameter(negative="", help="Print what was added as JSON.")] = False,
) -> int:
    """Build current versions of other allocators, to compare with them.

    Their sources are packages of Rust's crate registry, fetched by cargo, of pinned version and checksum. They are
    built with the system's compiler into a cache; each is seen serving a program before it is kept. From then on
    'freestone allocators' and 'freestone compare' know it by its name.

    Examples:

        freestone allocators add
        freestone allocators add mimalloc snmalloc

    Exit status: 0 fine, 2 wrong use, 3 none could be added, 4 some could not be added, 5 the cache cannot be written,
    130 interrupted.
    """
    if jobs is not None and jobs < 1:
        raise Stop(f"--jobs takes a number from 1 up, not {jobs}", ExitStatus.USAGE)
    try:
        wanted = peers.chosen(names)
    except UnknownPeer as error:
        raise Stop(str(error), ExitStatus.USAGE) from error
    status = _add(wanted, jobs or len(os.sched_getaffinity(0)))
    if json and status == ExitStatus.FINE:
        there = peers.built()
        rows = [_row(peer, there.get(peer.name)) for peer in wanted]
        print(json_format.dumps(rows, indent=2, ensure_ascii=False))
    return status


def _add(wanted: Sequence[Peer], jobs: int) -> int:
    possible = list(wanted)
    for tool, without in peers.lacking(wanted).items():
        say(f"no {tool.title}: {_names(without)} cannot be added; {peers.remedy(tool)}")
        possible = [peer for peer in possible if peer not in without]
    there = 0
    with Interruption() as stop:
        try:
            with stop.breakable():
                while possible:
                    peer = possible.pop(0)
                    try:
                        there += _added(peer, jobs)
                    except Unreachable as error:
                        say(str(error))
                        # Each further one would be tried for as long.
                        left = [other for other in possible if not peers.is_fetched(other)]
                        if left:
                            say(f"not tried, as they have to be fetched too: {_names(left)}")
                        possible = [other for other in possible if other not in left]
        except KeyboardInterrupt:
            say(f"interrupted; {there} of {len(wanted)} allocators are there, add the others with the same command")
            return 128 + stop.signal if stop.signal else ExitStatus.INTERRUPTED
    if there == len(wanted):
        return ExitStatus.FINE
    return ExitStatus.PARTLY_MEASURED if there else ExitStatus.NOTHING_MEASURED


def _added(peer: Peer, jobs: int) -> bool:
    try:
        result, new = peers.add(peer, jobs=jobs, say=say)
    except CacheError as error:
        raise Stop(str(error), ExitStatus.STORE) from error
    except Unreachable:
        raise
    except PeerError as error:
        say(str(error))
        return False
    how = f"built in {result.receipt.build_s:.0f} s" if new else "there already"
    say(f"{peer.name} {peer.version}: {how}, verified: {result.library}")
    return True


def _names(some: Sequence[Peer]) -> str:
    return ", ".join(peer.name for peer in some)


def _row(peer: Peer, found: Built | None) -> dict[str, object]:
    return {
        "name": peer.name,
        "project": peer.project,
        "title": peer.title,
        "version": peer.version,
        "package": peer.package.name,
        "package_version": peer.package.version,
        "package_sha256": peer.package.sha256,
        "file": str(found.library) if found else None,
        "receipt": found.receipt.model_dump() if found else None,
    }
