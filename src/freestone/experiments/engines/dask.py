"""A handful of unlike machines behind a scheduler of Dask: one task for each place, and results come back by it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import freestone
from freestone.experiments.engines import Carried, Unreachable, command
from freestone.experiments.engines.archive import packed, unpacked
from freestone.records.schema import Order, Place

LOOK_S: Final = 1.0
CONNECT_S: Final = 15.0
WORKER_S: Final = 10.0
"""How long a worker of a place may be away before it is told that the order waits for it."""


class Dask:
    """Submits the order to a scheduler."""

    def carry_out(
        self, order: Order, place: Place, folder: Path, tell: Callable[[str], None], stop: threading.Event
    ) -> Carried:
        """As :meth:`freestone.experiments.engines.Engine.carry_out`."""
        try:
            import distributed
        except ImportError as error:
            raise Unreachable("pip install 'freestone[dask]'") from error
        connect: Any = distributed.Client
        try:
            client = connect(str(place.address), timeout=CONNECT_S, set_as_default=False)
        except (OSError, distributed.TimeoutError) as error:
            raise Unreachable(f"no scheduler answers at {place.address}: {error}") from error
        with client:
            resources = {"resources": {place.kind: 1}} if place.kind else {}
            task: Any = client.submit(
                work,
                freestone.__version__,
                order.words,
                command.kept_as(order, place),
                order.directory,
                key=f"freestone-{command.kept_as(order, place)}",
                **resources,
            )
            waited = 0.0
            while not task.done():
                if stop.wait(LOOK_S):
                    task.cancel()
                    return Carried(130, "interrupted")
                waited = waited + LOOK_S if task.status == "pending" and not _workers(client, place) else 0.0
                if waited == WORKER_S:
                    tell(f"waits for a worker{f' with the resource {place.kind}' if place.kind else ''}")
            if task.status == "error":
                raise Unreachable(str(task.exception()).splitlines()[0])
            status, last, archive = task.result()
        unpacked(archive, folder)
        return Carried(status, last)


def _workers(client: Any, place: Place) -> list[str]:
    known = client.scheduler_info()["workers"]
    return [name for name, each in known.items() if not place.kind or each.get("resources", {}).get(place.kind)]


def work(version: str, words: Sequence[str], name: str, directory: str) -> tuple[int, str | None, bytes]:
    """What a worker does: the order, in its own cache, and an archive of what there is then.

    Args:
        version: of the lab that has ordered it.
        words: of the order.
        name: of the folder in the cache.
        directory: in which it was ordered; where there is none of that name here, it is the home folder.

    Raises:
        RuntimeError: the lab there is another one.
    """
    if version != freestone.__version__:
        raise RuntimeError(
            f"has freestone {freestone.__version__}, and the order is of {version}: install the same on both"
        )
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "freestone" / "orders" / name
    cache.mkdir(parents=True, exist_ok=True)
    order = Order(id=name, created_at="", freestone_version=version, words=list(words), places=[])
    asked = [sys.executable, "-m", "freestone", *command.words(order, str(cache))]
    # A worker that is killed leaves no lab behind that goes on measuring beside the next one's.
    line = command.held(shlex.join(asked))
    with subprocess.Popen(
        ["sh", "-c", line],
        cwd=command.started_in(directory),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as lab:
        assert lab.stderr is not None
        said = lab.stderr.read().decode(errors="replace").strip().splitlines()
    return lab.returncode, said[-1] if said else None, packed(cache)
