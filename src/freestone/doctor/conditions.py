"""What a remedy needs beside the program's environment, set for one run at a time: the kernel's folios, and a prctl.

The kernel's switches are of the whole machine. A process of its own holds them
(:mod:`freestone.doctor.guardian`), which puts them back when this one is gone, however it went: then its pipe ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from freestone.doctor import guardian
from freestone.records.schema import Configuration
from freestone.trials import LauncherBroken

SWITCHES: Final = Path("/sys/kernel/mm/transparent_hugepage")
RECORD: Final = Path("/run/freestone-kernel-switches.json")
"""What is set now. Where /run is kept in memory it goes with the kernel's run, as the switches do."""

_PR_SET_THP_DISABLE: Final = 41
_PR_GET_THP_DISABLE: Final = 42


class SwitchRefused(LauncherBroken):
    """A switch of the kernel's cannot be set, or was not put back; the message is one line."""


def obstacle(names: Mapping[str, str], *, switches: Path = SWITCHES, user: int | None = None) -> str | None:
    """Why these switches cannot be set, in one line; None where they can.

    Args:
        names: as in :attr:`Configuration.kernel`.
        switches: folder of the kernel's switches of huge pages.
        user: who asks; None for whoever runs this.
    """
    if not switches.is_dir():
        return "this kernel has no transparent huge pages"
    missing = [name for name in names if not (switches / name / "enabled").exists()]
    if missing:
        return f"this kernel has no switch for {', '.join(missing)}: folios of that size came with Linux 6.8"
    if (os.geteuid() if user is None else user) != 0:
        return "the kernel's switches are set by root alone"
    closed = next((name for name in names if not os.access(switches / name / "enabled", os.W_OK)), None)
    return None if closed is None else f"{switches / closed / 'enabled'} cannot be written here"


def left_over(record: Path = RECORD) -> list[str]:
    """What an earlier run has left set, with how to put it back, a line each; the file itself is not touched.

    Empty while somebody sets switches just now, and after another start of the kernel.
    """
    try:
        told = json.loads(record.read_text(encoding="utf-8") or "{}")
        with record.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        if told.get("boot") != guardian.boot():
            return []
        found = [(Path(file), before, word) for file, (before, word) in told["was"].items()]
        return [
            f"{file} was left at '{word}' by a freestone that was killed with its guardian; "
            f"as it was: echo {before} > {file}"
            for file, before, word in found
            if guardian.chosen(file) == word
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []


class Conditions:
    """Sets what configurations need. From the first switch of the kernel's on a guardian lives, until it is left."""

    def __init__(self, *, switches: Path = SWITCHES, record: Path = RECORD) -> None:
        self._switches = switches
        self._record = record
        self._guardian: subprocess.Popen[str] | None = None
        self.given: dict[str, int] = {}
        """Switch -> folios of its size that the kernel gave anybody while it was set, where the kernel counts them."""
        self.put_back: list[str] = []
        """What an earlier run had left set and this one's guardian has put back, a line each."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let the guardian go, which puts back what is set."""
        if self._guardian is not None and self._guardian.stdin is not None and self._guardian.stdout is not None:
            with contextlib.suppress(OSError):
                self._guardian.stdin.close()
            self._guardian.stdout.read()  # to its end
            self._guardian.stdout.close()
            self._guardian = None

    @contextlib.contextmanager
    def around(self, configuration: Configuration) -> Iterator[None]:
        """As long as it is entered, what is started has what the configuration needs.

        Raises:
            SwitchRefused: that cannot be had.
        """
        with (
            self._kernel(configuration.kernel) if configuration.kernel else contextlib.nullcontext(),
            no_huge_pages() if configuration.huge_pages_off else contextlib.nullcontext(),
        ):
            yield

    @contextlib.contextmanager
    def _kernel(self, words: Mapping[str, str]) -> Iterator[None]:
        before = {name: self._folios(name) for name in words}
        self._ask({"set": {str(self._switches / name / "enabled"): word for name, word in words.items()}})
        try:
            yield
        finally:
            for name, count in before.items():
                after = self._folios(name)
                if count is not None and after is not None:
                    self.given[name] = self.given.get(name, 0) + after - count
            if self._guardian is not None:
                self._ask({"back": True})

    def _folios(self, name: str) -> int | None:
        try:
            return int((self._switches / name / "stats" / "anon_fault_alloc").read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None

    def _ask(self, what: Mapping[str, Any]) -> None:
        """Have the guardian do something; where anything comes between, it is let go, and puts everything back."""
        try:
            if self._guardian is None:
                self._guardian = _started(self._record)
                self.put_back = [str(line) for line in _told(self._guardian).get("left", [])]
            assert self._guardian.stdin is not None
            self._guardian.stdin.write(json.dumps(what) + "\n")
            self._guardian.stdin.flush()
            _told(self._guardian)
        except OSError as error:
            self.close()
            raise SwitchRefused("the guardian of the kernel's switches is gone") from error
        except BaseException:
            self.close()
            raise


def _told(begun: subprocess.Popen[str]) -> Mapping[str, Any]:
    """The guardian's next line."""
    assert begun.stdout is not None
    line = begun.stdout.readline()
    if not line:
        raise SwitchRefused("the guardian of the kernel's switches is gone")
    told: Mapping[str, Any] = json.loads(line)
    if "error" in told:
        raise SwitchRefused(str(told["error"]))
    return told


def _started(record: Path) -> subprocess.Popen[str]:
    """A guardian that nobody's end takes along: in a session of its own, and no descendant of this process."""
    words = [sys.executable, "-I", "-S", "-B", str(Path(guardian.__file__).resolve()), str(record)]
    # The shell starts it and ends: what kills everything below this process does not find it.
    begun = subprocess.Popen(
        ["/bin/sh", "-c", 'exec 3<&0; "$@" <&3 3<&- &', "sh", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    begun.wait()
    return begun


@contextlib.contextmanager
def no_huge_pages() -> Iterator[None]:
    """Whatever is started meanwhile has no transparent huge pages: the prctl is handed on by fork and exec.

    Raises:
        SwitchRefused: the kernel refuses it.
    """
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    before = prctl(_PR_GET_THP_DISABLE, 0, 0, 0, 0)
    if prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0 or prctl(_PR_GET_THP_DISABLE, 0, 0, 0, 0) != 1:
        raise SwitchRefused(f"prctl(PR_SET_THP_DISABLE) is refused: {os.strerror(ctypes.get_errno())}")
    try:
        yield
    finally:
        prctl(_PR_SET_THP_DISABLE, max(0, before), 0, 0, 0)
