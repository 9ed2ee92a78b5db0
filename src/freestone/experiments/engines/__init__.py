"""Ways to have another machine measure: ``local``, ``ssh``, ``slurm``, ``dask``. Each is a module with one function.

An order is a command that may be given any number of times: ``freestone compare --into FOLDER ...`` measures whatever
its folder lacks. So an engine knows nothing of experiments, and an interrupted machine loses at most its current trial.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from freestone.records.schema import Order, Place

Tell = Callable[[str], None]
"""Called with each line that a machine has to say."""


class Unreachable(Exception):
    """A machine cannot carry out the order; the message is one line."""


@dataclass(frozen=True)
class Carried:
    """How a command ended."""

    status: int
    """Its exit status; negative if a signal ended it."""
    last: str | None
    """The last line of its standard error."""
    output: bytes = b""
    """Its standard output."""


Engine = Callable[[Order, Place, Path, Tell, threading.Event], Carried]
"""Measures whatever a place lacks of an order and brings its results into a local folder.

Args: the order; the place; the local results folder, which may hold earlier results; receives each line; set to stop.
Raises: Unreachable.
"""


def engine_of(name: str) -> Engine:
    """Import the engine of this name: the libraries behind it are large.

    Raises:
        Unreachable: there is none, as for results that were copied.
    """
    if name not in ("local", "ssh", "slurm", "dask"):
        raise Unreachable(f"its results are a copy ({name}): go on where they were measured")
    engine: Engine = importlib.import_module(f"{__name__}.{name}").carry_out
    return engine
