"""Machines behind a scheduler of Dask: one task for each place. It returns its results as an archive.

Dask does not end a task that runs, so the task itself looks whether it is still wanted: it is not if the user stops, or
if the client or the scheduler is gone. Then the lab there ends, and its results stay in the cache of the worker.
"""

from __future__ import annotations

import logging
import secrets
import shlex
import threading
from collections.abc import Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any, Final

import freestone
from freestone.experiments.engines import Carried, Tell, Unreachable, archive, command
from freestone.records import cached, installation
from freestone.records.schema import Order, Place

LOOK_S: Final = 1.0
CONNECT_S: Final = 15.0
WORKER_S: Final = 10.0
"""How long a place may be without a worker before a line says so."""

Done = tuple[int, str | None, bytes]
"""The lab's exit status, the last line of its standard error, and an archive of its results."""


def carry_out(order: Order, place: Place, folder: Path, tell: Tell, stop: threading.Event) -> Carried:
    """Run the order as a task; an :data:`freestone.experiments.engines.Engine`."""
    try:
        import distributed
    except ImportError as error:
        raise Unreachable(f"Dask needs: {installation.to_get('dask', ['distributed'])}") from error
    _quiet()
    connect: Any = distributed.Client
    try:
        client = connect(str(place.address), timeout=CONNECT_S, set_as_default=False)
    except (OSError, distributed.TimeoutError) as error:
        raise Unreachable(f"no scheduler answers at {place.address}: {error}") from error
    try:
        with client:
            done = _result(client, order, place, folder, tell, stop)
    except (CancelledError, OSError, distributed.TimeoutError) as error:
        raise Unreachable(f"the scheduler at {place.address} is gone, or has cancelled the order") from error
    if done is None:
        return command.INTERRUPTED
    status, last, results = done
    archive.unpack(results, folder)
    return Carried(status, last)


def _result(client: Any, order: Order, place: Place, folder: Path, tell: Tell, stop: threading.Event) -> Done | None:
    """Return the result of the task; None if the user stops."""
    name = command.kept_as(order, place)
    key = f"freestone-{name}-{secrets.token_hex(4)}"  # a cancelled task is never taken for the next one
    needs = {"resources": {place.kind: 1}} if place.kind else {}
    arguments = (freestone.__version__, order.words, name, order.directory, archive.pack(folder), key)
    task: Any = client.submit(work, *arguments, key=key, **needs)
    waited = 0.0
    while not task.done():
        if stop.wait(LOOK_S):
            task.cancel()
            return None
        waited = waited + LOOK_S if task.status == "pending" and not _has_worker(client, place) else 0.0
        if waited == WORKER_S:
            tell(f"waits for a worker{f' with the resource {place.kind}' if place.kind else ''}")
    if task.status == "error":
        error = task.exception()
        raise Unreachable(next(iter(str(error).splitlines()), type(error).__name__))
    done: Done = task.result()
    return done


def _has_worker(client: Any, place: Place) -> bool:
    workers = client.scheduler_info()["workers"].values()
    return any(not place.kind or each.get("resources", {}).get(place.kind) for each in workers)


def _quiet() -> None:
    """Silence the log of Dask: one line reports a lost scheduler."""
    for name in ("asyncio", *list(logging.root.manager.loggerDict)):
        if name.partition(".")[0] in ("asyncio", "distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def work(version: str, words: Sequence[str], name: str, directory: str, held: bytes = b"", key: str = "") -> Done:
    """Carry out an order on a worker, in its cache.

    Args:
        version: of the lab that gave the order.
        words: of the order.
        name: of the folder in the cache.
        directory: the working folder in which it was given; if there is none here, the home folder.
        held: an archive of earlier results, for a worker that has lost its cache; empty for none.
        key: of the task; empty outside of a worker.

    Raises:
        RuntimeError: the lab here has another version.
        Unreachable: the results cannot be read or written.
    """
    if version != freestone.__version__:
        raise RuntimeError(
            f"has freestone {freestone.__version__}, and this order needs {version}: install the same on both"
        )
    folder = cached.folder() / "orders" / name
    folder.mkdir(parents=True, exist_ok=True)
    if held and not any(folder.iterdir()):
        archive.unpack(held, folder)
    order = Order(id=name, created_at="", freestone_version=version, words=list(words), places=[])
    # A worker that is killed leaves no lab behind that would disturb the next one.
    line = command.held(shlex.join(command.lab(*command.words(order, str(folder)))))
    stop, over = threading.Event(), threading.Event()
    if key:
        threading.Thread(target=_watch, args=(_tasks(), key, stop, over), daemon=True).start()
    try:
        carried = command.run(["sh", "-c", line], stop, at_stop="close", folder=command.started_in(directory))
    finally:
        over.set()
    return carried.status, carried.last, archive.pack(folder)


def _tasks() -> Any:
    import distributed

    find: Any = distributed.get_worker
    return find().state.tasks


def _watch(tasks: Any, key: str, stop: threading.Event, over: threading.Event) -> None:
    """Stop the lab once the worker no longer runs the task."""
    while not over.wait(LOOK_S):
        task = tasks.get(key)
        if task is None or task.state not in ("executing", "long-running"):
            stop.set()
            return
