"""This machine, as one place among others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from freestone.experiments.engines import Carried, command
from freestone.records.schema import Order, Place


class Local:
    """Runs the order here, in a process of its own."""

    def carry_out(
        self, order: Order, place: Place, folder: Path, tell: Callable[[str], None], stop: threading.Event
    ) -> Carried:
        """As :meth:`freestone.experiments.engines.Engine.carry_out`."""
        asked = command.lab(*command.words(order, str(folder.absolute())))
        return command.run(asked, tell, stop, folder=command.started_in(order.directory))
