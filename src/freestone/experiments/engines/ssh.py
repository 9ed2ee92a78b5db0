"""Machines that ssh reaches. They need the lab and a shell, and no shared folder.

A machine measures into its own cache. The results are copied as an archive, and removed there once they are complete
and written here. The lab there holds a pipe to this one: it ends with the connection, and its results stay.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import shlex
import threading
from pathlib import Path
from typing import Final

import freestone
from freestone.experiments.engines import Carried, Tell, Unreachable, archive, command
from freestone.records import store
from freestone.records.schema import Order, Place

OPTIONS: Final = tuple(
    word
    for option in ("BatchMode=yes", "ConnectTimeout=15", "ServerAliveInterval=15", "ServerAliveCountMax=4")
    for word in ("-o", option)
)
"""Nobody can type a password, and a lost connection is noticed within a minute."""

_FIND: Final = 'PATH="$PATH:$HOME/.local/bin"; '
"""Installers for one account put programs there, and the PATH of a command over ssh often lacks it."""

_NOT_FOUND: Final = 127
_LOST: Final = 255
_HERE: Final = "\0"
"""Stands for the folder on that machine: only its shell can name it."""


def carry_out(order: Order, place: Place, folder: Path, tell: Tell, stop: threading.Event) -> Carried:
    """Run the order over ssh; an :data:`freestone.experiments.engines.Engine`."""
    host = _Host(str(place.address), stop)
    host.require_same_lab()
    there = f'"${{XDG_CACHE_HOME:-$HOME/.cache}}/freestone/orders/{command.kept_as(order, place)}"'
    held = archive.pack(folder)
    if held:  # it continues even if it has lost its cache
        begun = f"[ -e {there}/{store.EXPERIMENT_FILE} ] || [ -e {there}/{store.TRIALS_FILE} ]"
        host.ask(f"{begun} || {{ mkdir -p {there} && tar -C {there} -xf -; }}", given=held)
    words = " ".join(there if word == _HERE else shlex.quote(word) for word in command.words(order, _HERE))
    line = f"{_FIND}cd {shlex.quote(order.directory)} 2>/dev/null || cd; mkdir -p {there}; "
    carried = command.run(host.words(line + command.held(f"freestone {words}")), stop, tell=tell, at_stop="close")
    if carried.status == _LOST:
        with contextlib.suppress(Unreachable):
            archive.unpack(host.ask(f"tar -C {there} -cf - ."), folder)
        raise Unreachable(carried.last or "ssh lost the connection")
    archive.unpack(host.ask(f"tar -C {there} -cf - ."), folder)
    if carried.status in command.DONE:
        with contextlib.suppress(Unreachable):
            host.ask(f"rm -rf {there}")
    return carried


class _Host:
    """A host, and commands for its shell."""

    def __init__(self, address: str, stop: threading.Event) -> None:
        self._address = f"ssh://{address}" if re.fullmatch(r"[^:]+:\d+", address) else address
        self._stop = stop

    def words(self, line: str) -> list[str]:
        """Return the command that has the shell of the host run a line."""
        return ["ssh", *OPTIONS, self._address, line]

    def require_same_lab(self) -> None:
        """Raise Unreachable if the host has no lab, or another version."""
        carried, said = self._run(f"{_FIND}freestone --version")
        if carried.status == _NOT_FOUND:
            raise Unreachable("there is no freestone on its path: install the wheel there")
        version = _require(carried, said).decode(errors="replace").split()[-1:]
        if version != [freestone.__version__]:
            had = "".join(version) or "of an unknown version"
            raise Unreachable(f"has freestone {had}, and this one is {freestone.__version__}: install the same on both")

    def ask(self, line: str, given: bytes | None = None) -> bytes:
        """Return the output of a line that the shell of the host runs.

        Raises:
            Unreachable: the host does not answer, or the line failed.
        """
        return _require(*self._run(line, given))

    def _run(self, line: str, given: bytes | None = None) -> tuple[Carried, bytes | None]:
        """Return how a line ended, and its output; None if the shell never began it."""
        # A greeting of the login shell comes before the mark. In two parts: a shell may echo the line itself.
        one, other = secrets.token_hex(8), secrets.token_hex(8)
        carried = command.run(self.words(f"printf '%s%s\\n' {one} {other}; {line}"), self._stop, given=given)
        _, mark, output = carried.output.partition(f"{one}{other}\n".encode())
        return carried, output if mark else None


def _require(carried: Carried, output: bytes | None) -> bytes:
    if carried.status != 0:
        raise Unreachable(carried.last or f"ssh ended with status {carried.status}")
    if output is None:
        raise Unreachable("its shell ends before it runs a command: see what runs there at login")
    return output
