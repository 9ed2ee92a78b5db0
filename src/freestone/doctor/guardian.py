"""Sets switches of the kernel's for somebody else, and puts them back whatever becomes of them.

A program of its own, with nothing but Python's library: ``python guardian.py RECORD``. Each line of its input is a JSON
object, and is answered by one line:

    {"set": {FILE: WORD, ...}}   the switches are set        {"ok": true} or {"error": LINE}, with nothing set then
    {"back": true}               they are as they were       likewise
    end of input                 likewise, and it ends

The first line is its own: ``{"ok": true, "left": [LINE, ...]}``, with what an earlier one had not put back and this one
has. RECORD holds what is set while anything is, so that the next one knows of it even where this one was killed. It is
locked: who finds it taken says so and ends. Only a switch that still stands where it was set is put back; another word
is somebody else's.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

BOOT = Path("/proc/sys/kernel/random/boot_id")
"""Another one, and every switch is as the system sets it at its start."""


def chosen(file: Path) -> str:
    """The word that a switch stands at: in brackets, or all there is."""
    text = file.read_text(encoding="utf-8").strip()
    found = re.search(r"\[(\w+)\]", text)
    return found[1] if found else text


def boot() -> str:
    """Names this run of the kernel; empty where it has no name."""
    try:
        return BOOT.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


class Switches:
    """Those that are set now, each with the word that it stood at; the same on the disk."""

    def __init__(self, record: Path) -> None:
        self._record = record
        self._was: dict[str, tuple[str, str]] = {}
        """File -> word before, word that was set."""

    def set(self, words: Mapping[str, str]) -> None:
        """Set all of them, or none.

        Raises:
            OSError, ValueError: one cannot be set; all are as they were.
        """
        try:
            for file, word in words.items():
                self._was[file] = (chosen(Path(file)), word)
            self._write()
            for file, word in words.items():
                Path(file).write_text(word, encoding="utf-8")
                if chosen(Path(file)) != word:
                    raise ValueError(f"{file} does not take '{word}'")
        except (OSError, ValueError):
            self.back()
            raise

    def back(self) -> list[str]:
        """Put all of them back; the files that were."""
        found = []
        for file, (before, word) in list(self._was.items()):
            try:
                if chosen(Path(file)) == word != before:
                    Path(file).write_text(before, encoding="utf-8")
                    found.append(file)
            except OSError as error:
                print(f"freestone: {file} stays at '{word}', it was '{before}': {error.strerror}", file=sys.stderr)
                continue
            del self._was[file]
        self._write()
        return found

    def found(self) -> list[str]:
        """Put back what the record names, where the kernel is the same; what was, a line each."""
        try:
            told = json.loads(self._record.read_text(encoding="utf-8") or "{}")
            if told.get("boot") == boot():
                self._was = {file: (before, word) for file, (before, word) in told["was"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return []
        before = dict(self._was)
        return [f"{file} was left at '{before[file][1]}' and is '{before[file][0]}' again" for file in self.back()]

    def _write(self) -> None:
        """In place, for the lock belongs to this very file."""
        text = json.dumps({"boot": boot(), "was": self._was}) if self._was else ""
        with self._record.open("r+", encoding="utf-8") as file:
            file.write(text)
            file.truncate()
            file.flush()
            os.fsync(file.fileno())


def answer(switches: Switches, line: str) -> dict[str, Any]:
    """Do what a line asks for."""
    try:
        asked = json.loads(line)
        if "set" in asked:
            switches.set(asked["set"])
        else:
            switches.back()
    except OSError as error:
        return {"error": f"{error.filename}: {error.strerror}" if error.filename else str(error)}
    except ValueError as error:
        return {"error": str(error)}
    return {"ok": True}


def main(record: Path) -> int:
    """Serve until the input ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)  # whoever is meant, the switches are put back at the end of the input
    try:
        held = os.open(record, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _told({"error": "another freestone sets the kernel's switches just now"})
    except OSError as error:
        return _told({"error": f"{record}: {error.strerror}"})
    switches = Switches(record)
    _told({"ok": True, "left": switches.found()})
    try:
        for line in sys.stdin:
            _told(answer(switches, line))
    finally:
        switches.back()
    return 0


def _told(what: Mapping[str, Any]) -> int:
    with contextlib.suppress(OSError):  # whoever asked may be gone
        print(json.dumps(what), flush=True)
    return 1 if "error" in what else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
