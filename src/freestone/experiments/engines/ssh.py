"""Machines that ssh reaches: nothing but the lab needs to be there, and no folder is shared.

The results lie in the cache of the account there until they are complete, and are fetched as an archive. The program
that measures hears of a lost connection by the end of its standard input, finishes nothing, and keeps what it has.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import freestone
from freestone.experiments import clocks
from freestone.experiments.engines import Carried, Unreachable, command
from freestone.experiments.engines.archive import unpacked
from freestone.records.schema import Order, Place

OPTIONS: Final = tuple(
    word
    for option in ("BatchMode=yes", "ConnectTimeout=15", "ServerAliveInterval=15", "ServerAliveCountMax=4")
    for word in ("-o", option)
)
"""Nobody is there to type a password, and a connection that is gone is noticed within a minute."""

_FIND: Final = 'PATH="$PATH:$HOME/.local/bin"; '
"""Where installers for one account put programs, which a shell that is not asked in has not on its path."""


class Ssh:
    """Runs the order by ssh."""

    def __init__(self, program: str = "ssh") -> None:
        self._program = program

    def carry_out(
        self, order: Order, place: Place, folder: Path, tell: Callable[[str], None], stop: threading.Event
    ) -> Carried:
        """As :meth:`freestone.experiments.engines.Engine.carry_out`."""
        self._require_same_lab(place, tell)
        there = f'"${{XDG_CACHE_HOME:-$HOME/.cache}}/freestone/orders/{command.kept_as(order, place)}"'
        asked = " ".join(there if word == _HERE else shlex.quote(word) for word in command.words(order, _HERE))
        directory = f"cd {shlex.quote(order.directory)} 2>/dev/null || cd; "
        line = f"{_FIND}{directory}mkdir -p {there}; " + command.held(f"freestone {asked}")
        carried = command.run(self._command(place, line), tell, stop, hold=True)
        if carried.status == 255:
            with contextlib.suppress(Unreachable):  # most likely it is gone
                self._fetch(place, there, folder)
            raise Unreachable(carried.last or "ssh lost the connection")
        self._fetch(place, there, folder)  # what is not brought here is not measured
        return carried

    def _command(self, place: Place, line: str) -> list[str]:
        address = str(place.address)
        with_port = re.fullmatch(r"[^:]+:\d+", address)
        return [self._program, *OPTIONS, f"ssh://{address}" if with_port else address, line]

    def _require_same_lab(self, place: Place, tell: Callable[[str], None]) -> None:
        before = time.time()
        said = self._ask(place, f"{_FIND}freestone --version && date +%s").split()
        after = time.time()
        if len(said) < 3 or said[-2] != freestone.__version__:
            had = said[-2] if len(said) > 2 else "another freestone"
            raise Unreachable(f"has freestone {had}, and this one is {freestone.__version__}: install the same on both")
        clock = float(said[-1]) if said[-1].isdigit() else before
        apart = max(before - clock, clock - after) - 1
        if apart > clocks.MOST_APART_S:
            tell(clocks.told(apart))

    def _fetch(self, place: Place, there: str, folder: Path) -> None:
        archive = self._run(place, f"tar -C {there} -cf - .")
        unpacked(archive, folder)

    def _ask(self, place: Place, line: str) -> str:
        return self._run(place, line).decode(errors="replace")

    def _run(self, place: Place, line: str) -> bytes:
        try:
            done = subprocess.run(
                self._command(place, line),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
        except OSError as error:
            raise Unreachable(f"{self._program}: {error.strerror or error}") from error
        if done.returncode != 0:
            told = done.stderr.decode(errors="replace").strip().splitlines()
            if done.returncode == 127:
                raise Unreachable("there is no freestone on its path: install the wheel there")
            raise Unreachable(told[-1] if told else f"ssh ended with status {done.returncode}")
        return done.stdout


_HERE: Final = "\0"
"""Stands for the folder there, which only the shell there can name."""
