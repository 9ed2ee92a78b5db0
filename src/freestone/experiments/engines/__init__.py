"""How a place is reached and made to carry out an order.

An order is a command that may be given any number of times: ``freestone compare --into FOLDER ...`` does what the
folder does not hold yet. So an engine knows nothing of experiments, and what a lost worker had finished is kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from freestone.records.schema import Order, Place


class Unreachable(Exception):
    """A place cannot carry out the order; the message is one line."""


@dataclass(frozen=True)
class Carried:
    """How it ended at a place."""

    status: int
    """The command's exit status; negative where a signal ended it."""
    last: str | None
    """The last line it wrote to standard error."""


class Engine(Protocol):
    """One way to reach places."""

    def carry_out(
        self, order: Order, place: Place, folder: Path, tell: Callable[[str], None], stop: threading.Event
    ) -> Carried:
        """Do at a place what has not been done of an order, and bring what there is into a folder.

        Args:
            order: what is to be done.
            place: where.
            folder: a results folder, there already where something was brought before.
            tell: told each line that the place has to say.
            stop: set by whoever wants it to end; what was finished is brought all the same.

        Raises:
            Unreachable: nothing can be done there.
        """


def engine_of(name: str) -> Engine:
    """The engine of this name; each is imported as it is used, since their libraries are large.

    Raises:
        Unreachable: its library is not here.
    """
    if name == "local":
        from freestone.experiments.engines.local import Local

        return Local()
    if name == "ssh":
        from freestone.experiments.engines.ssh import Ssh

        return Ssh()
    if name == "slurm":
        from freestone.experiments.engines.slurm import Slurm

        return Slurm()
    from freestone.experiments.engines.dask import Dask

    return Dask()
