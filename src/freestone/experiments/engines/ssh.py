"""Machines that ssh reaches: nothing but the lab needs to be there, and no folder is shared.

The results lie in the cache of the account there and are fetched as an archive; once a place has done all, and what it
has measured is here and on the disk, it is removed there. The program that measures hears of a lost connection by the
end of its standard input, finishes nothing, and keeps what it has.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import shlex
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import freestone
from freestone.experiments import clocks
from freestone.experiments.engines import Carried, Unreachable, archive, command
from freestone.experiments.engines.question import Answer, asked
from freestone.records import store
from freestone.records.schema import Order, Place

OPTIONS: Final = tuple(
    word
    for option in ("BatchMode=yes", "ConnectTimeout=15", "ServerAliveInterval=15", "ServerAliveCountMax=4")
    for word in ("-o", option)
)
"""Nobody is there to type a password, and a connection that is gone is noticed within a minute."""

_FIND: Final = 'PATH="$PATH:$HOME/.local/bin"; '
"""Where installers for one account put programs, which a shell that is not asked in has not on its path."""

_NOT_FOUND: Final = 127
_LOST: Final = 255


class Ssh:
    """Runs the order by ssh."""

    def __init__(self, program: str = "ssh") -> None:
        self._program = program

    def carry_out(
        self, order: Order, place: Place, folder: Path, tell: Callable[[str], None], stop: threading.Event
    ) -> Carried:
        """As :meth:`freestone.experiments.engines.Engine.carry_out`."""
        host = _Host(self._program, place, stop)
        host.require_same_lab(tell)
        there = f'"${{XDG_CACHE_HOME:-$HOME/.cache}}/freestone/orders/{command.kept_as(order, place)}"'
        _give_back(host, there, folder, tell)
        words = " ".join(there if word == _HERE else shlex.quote(word) for word in command.words(order, _HERE))
        directory = f"cd {shlex.quote(order.directory)} 2>/dev/null || cd; "
        line = f"{_FIND}{directory}mkdir -p {there}; " + command.held(f"freestone {words}")
        carried = command.run(host.command(line), tell, stop, hold=True)
        if carried.status == _LOST:
            with contextlib.suppress(Unreachable):  # most likely it is gone
                archive.unpacked(host.packed(there), folder)
            raise Unreachable(carried.last or "ssh lost the connection")
        brought = host.packed(there)
        archive.unpacked(brought, folder)  # what is not brought here is not measured
        if carried.status in command.DONE:
            _removed(host, there, archive.secured(brought, folder), folder)
        return carried


def _removed(host: _Host, there: str, names: Sequence[str], folder: Path) -> None:
    """Take away at a place what is here. What somebody has added since stays, and so does all where that is unsure.

    Args:
        names: of the files that are here as they were there.
    """
    if store.TRIALS_FILE not in names or store.EXPERIMENT_FILE not in names:
        return
    size = (folder / store.TRIALS_FILE).stat().st_size
    # Under another name it is no order's any more, whatever becomes of the rest.
    gone = f"{there}.brought"
    files = " ".join(shlex.quote(name) for name in names)
    with contextlib.suppress(Unreachable):
        host.said(
            f'[ "$(wc -c <{there}/{store.TRIALS_FILE})" -eq {size} ] && mv {there} {gone} && cd {gone} && '
            f"rm -f -- {files} && cd .. && rmdir {gone}"
        )


def _give_back(host: _Host, there: str, folder: Path, tell: Callable[[str], None]) -> None:
    """See to it that a place goes on where it was, also where it holds nothing any more of what was brought from it.

    Raises:
        Unreachable: what it holds is less than what is here, or something else.
    """
    if not store.read_trials(folder).records:
        return
    if host.has(there):
        lost = archive.lost(host.packed(there), folder)
        if lost is not None:
            raise Unreachable(archive.to_take_away(lost, there))
        return
    tell("holds nothing of it any more: it is given what was brought from it, and goes on from there")
    host.said(f"mkdir -p {there} && tar -C {there} -xf -", given=archive.packed(folder))


class _Host:
    """A host, and the questions that it is asked."""

    def __init__(self, program: str, place: Place, stop: threading.Event) -> None:
        self._program, self._place, self._stop = program, place, stop

    def command(self, line: str) -> list[str]:
        """What gives a line to the shell there."""
        address = str(self._place.address)
        with_port = re.fullmatch(r"[^:]+:\d+", address)
        return [self._program, *OPTIONS, f"ssh://{address}" if with_port else address, line]

    def require_same_lab(self, tell: Callable[[str], None]) -> None:
        """Raises Unreachable where there is another lab, or none; a clock that is apart is told."""
        before = time.time()
        answer, text = self._answer(f"{_FIND}freestone --version && date +%s")
        after = time.time()
        if answer.status == _NOT_FOUND:
            raise Unreachable("there is no freestone on its path: install the wheel there")
        said = _fine(answer, text).decode(errors="replace").split()
        if len(said) < 3 or said[-2] != freestone.__version__:
            had = said[-2] if len(said) > 2 else "another freestone"
            raise Unreachable(f"has freestone {had}, and this one is {freestone.__version__}: install the same on both")
        clock = float(said[-1]) if said[-1].isdigit() else before
        apart = max(before - clock, clock - after) - 1
        if apart > clocks.MOST_APART_S:
            tell(clocks.told(apart))

    def has(self, there: str) -> bool:
        """Whether a folder there holds anything of an experiment."""
        files = " || ".join(f"[ -e {there}/{name} ]" for name in (store.EXPERIMENT_FILE, store.TRIALS_FILE))
        return self.said(f"if {files}; then echo yes; else echo no; fi").strip() == b"yes"

    def packed(self, there: str) -> bytes:
        """A folder there as an archive; also when somebody asks to stop, as long as anything comes."""
        return self.said(f"tar -C {there} -cf - .", wanted=True)

    def said(self, line: str, *, given: bytes = b"", wanted: bool = False) -> bytes:
        """What a line said there.

        Raises:
            Unreachable: the host does not answer, or the line failed.
        """
        return _fine(*self._answer(line, given=given, wanted=wanted))

    def _answer(self, line: str, *, given: bytes = b"", wanted: bool = False) -> tuple[Answer, bytes | None]:
        """The answer to a line, and what it said; None where the line was never begun."""
        # What greets whoever comes in is said before. In two parts: the line itself may be said, too.
        one, other = secrets.token_hex(8), secrets.token_hex(8)
        marked = f"printf '%s%s\\n' {one} {other}; {line}"
        answer = asked(self.command(marked), self._stop, given=given, wanted=wanted)
        _, mark, text = answer.said.partition(f"{one}{other}\n".encode())
        return answer, text if mark else None


def _fine(answer: Answer, text: bytes | None) -> bytes:
    if answer.status != 0:
        raise Unreachable(answer.told or f"ssh ended with status {answer.status}")
    if text is None:
        raise Unreachable("its shell ends before it does what it is asked for: see what runs there at login")
    return text


_HERE: Final = "\0"
"""Stands for the folder there, which only the shell there can name."""
