"""This machine."""

from __future__ import annotations

import threading
from pathlib import Path

from freestone.experiments.engines import Carried, Tell, command
from freestone.records.schema import Order, Place


def carry_out(order: Order, place: Place, folder: Path, tell: Tell, stop: threading.Event) -> Carried:
    """Run the order here, in another process; an :data:`freestone.experiments.engines.Engine`."""
    words = command.lab(*command.words(order, str(folder.absolute())))
    return command.run(words, stop, tell=tell, at_stop="terminate", folder=command.started_in(order.directory))
