"""A handful of unlike machines behind a scheduler of Dask: one task for each place, and results come back by it.

A task looks by itself whether it is still wanted: Dask ends none that runs. Whoever asks for its end sets an event that
the task waits for at the scheduler, which says nothing while it measures; and a client that is gone takes its task with
it.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import shlex
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any, Final

import freestone
from freestone.experiments.engines import Carried, Unreachable, archive, command, scratch
from freestone.records import cached, installation, store
from freestone.records.schema import Order, Place

LOOK_S: Final = 1.0
CONNECT_S: Final = 15.0
WORKER_S: Final = 10.0
"""How long a worker of a place may be away before it is told that the order waits for it."""

ENDED_S: Final = 2 * command.PATIENCE_S
"""How long a task that is told to end has to bring what it has finished."""

HEARD_S: Final = 30.0
"""How often a worker asks anew whether it is to end; until then it is the scheduler that answers late."""


class Dask:
    """Submits the order to a scheduler."""

    def carry_out(
        self, order: Order, place: Place, folder: Path, tell: Callable[[str], None], stop: threading.Event
    ) -> Carried:
        """As :meth:`freestone.experiments.engines.Engine.carry_out`."""
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
                done = _done(client, order, place, folder, tell, stop)
        except (CancelledError, OSError, distributed.TimeoutError) as error:
            raise Unreachable(f"the scheduler at {place.address} is gone, or has cancelled the order") from error
        if done is None:
            return Carried(130, "interrupted")
        status, last, brought = done
        archive.unpacked(brought, folder)
        return Carried(status, last)


Done = tuple[int, str | None, bytes]
"""The lab's exit status, the last line it wrote to standard error, and an archive of what there is."""


def _done(
    client: Any, order: Order, place: Place, folder: Path, tell: Callable[[str], None], stop: threading.Event
) -> Done | None:
    """What a worker has brought; None where somebody has asked to stop and it brings nothing."""
    import distributed

    name = command.kept_as(order, place)
    # Each task a name of its own: one that was told to end is not taken for the next.
    key = f"freestone-{name}-{secrets.token_hex(4)}"
    event: Any = distributed.Event
    ending = event(key, client=client)
    before = archive.packed(folder) if store.read_trials(folder).records else None
    resources = {"resources": {place.kind: 1}} if place.kind else {}
    task: Any = client.submit(
        work, freestone.__version__, order.words, name, order.directory, key, before, key=key, **resources
    )
    waited = 0.0
    while not task.done():
        if stop.wait(LOOK_S):
            if any(key in keys for keys in client.processing().values()):
                ending.set()
                _wait(task, ENDED_S)
            if not task.done():
                task.cancel()
                return None
            break
        waited = waited + LOOK_S if task.status == "pending" and not _workers(client, place) else 0.0
        if waited == WORKER_S:
            tell(f"waits for a worker{f' with the resource {place.kind}' if place.kind else ''}")
    if task.status == "error":
        error = task.exception()
        raise Unreachable(next(iter(str(error).splitlines()), type(error).__name__))
    done: Done = task.result()
    return done


def _wait(task: Any, most_s: float) -> None:
    end = time.monotonic() + most_s
    while not task.done() and time.monotonic() < end:
        time.sleep(LOOK_S / 10)


def _workers(client: Any, place: Place) -> list[str]:
    known = client.scheduler_info()["workers"]
    return [name for name, each in known.items() if not place.kind or each.get("resources", {}).get(place.kind)]


def _quiet() -> None:
    """What Dask logs of a scheduler that is gone is told in one line instead."""
    for name in ("asyncio", *list(logging.root.manager.loggerDict)):
        if name.partition(".")[0] in ("asyncio", "distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def work(
    version: str,
    words: Sequence[str],
    name: str,
    directory: str,
    ending: str | None = None,
    before: bytes | None = None,
) -> Done:
    """What a worker does: the order, in its own cache, and an archive of what there is then.

    Args:
        version: of the lab that has ordered it.
        words: of the order.
        name: of the folder in the cache.
        directory: in which it was ordered; where there is none of that name here, it is the home folder.
        ending: the name of the event that tells it to end, and of the task; None outside of a worker.
        before: an archive of what was brought before; None where nothing was.

    Raises:
        RuntimeError: the lab there is another one.
        Unreachable: what is in the cache is not what was brought before, or is more than is taken of a place.
    """
    if version != freestone.__version__:
        raise RuntimeError(
            f"has freestone {freestone.__version__}, and the order is of {version}: install the same on both"
        )
    cache = cached.folder() / "orders" / name
    cache.mkdir(parents=True, exist_ok=True)
    scratch.remove_left(cache.parent)
    if before is not None:
        archive.given_back(before, cache)
    order = Order(id=name, created_at="", freestone_version=version, words=list(words), places=[])
    # A worker that is killed leaves no lab behind that goes on measuring beside the next one's.
    line = command.held(shlex.join(command.lab(*command.words(order, str(cache)))))
    with _told_to_end(ending) as stop:
        carried = command.run(
            ["sh", "-c", line], lambda line: None, stop, hold=True, folder=command.started_in(directory)
        )
    return carried.status, carried.last, archive.packed(cache)


@contextlib.contextmanager
def _told_to_end(ending: str | None) -> Iterator[threading.Event]:
    """Set where the event is, or nobody wants the task any more.

    Args:
        ending: the name of both; None outside of a worker.
    """
    stop, over = threading.Event(), threading.Event()
    if ending is None:
        yield stop
        return
    import distributed

    ask: Any = distributed.get_client
    find: Any = distributed.get_worker
    event: Any = distributed.Event
    told, tasks = event(ending, client=ask()), find().state.tasks

    def hear() -> None:
        while not over.is_set():
            with contextlib.suppress(Exception):  # a scheduler that is gone ends its workers
                if told.wait(timeout=HEARD_S):
                    stop.set()
                    return
            over.wait(LOOK_S)

    def look() -> None:
        while not over.wait(LOOK_S):
            task = tasks.get(ending)
            if task is None or task.state not in ("executing", "long-running"):
                stop.set()
                return

    for target in (hear, look):
        threading.Thread(target=target, daemon=True).start()
    try:
        yield stop
    finally:
        over.set()
