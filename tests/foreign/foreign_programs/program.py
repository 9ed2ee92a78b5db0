"""What is known of a foreign program: what it is made to do, what that needs, and which images prove it was served."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from foreign_programs.room import Room

ENVIRONMENT = ("", "guard=1", "harden=1")
"""Modes of a program that stands for an environment: others replace functions there that an allocator may call."""


@dataclass(frozen=True)
class Program:
    """``needs`` are commands, or patterns of files where they begin with a slash; ``images`` are file names of program
    images of which at least one each has to be seen served by the allocator under test. ``modes`` are values of
    FREESTONE_OPTIONS: the program runs once under each."""

    name: str
    what: str
    package: str
    needs: tuple[str, ...]
    images: tuple[str, ...]
    work: Callable[[Room], None]
    version: tuple[str, ...]
    user: str | None = None
    limit_s: float = 900.0
    modes: tuple[str, ...] = ("",)

    def missing(self) -> list[str]:
        """What of its needs this machine does not have."""
        return [need for need in self.needs if not present(need)]

    def told_version(self) -> str:
        """The version as the program tells it; a question mark where it does not."""
        command = [shutil.which(self.version[0]) or newest(self.version[0]) or self.version[0], *self.version[1:]]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        except OSError:
            return "?"
        number = re.search(r"\d+(?:\.\d+)+", done.stdout + done.stderr)
        return number[0] if number else "?"


def of_package(name: str) -> tuple[str, ...]:
    """What tells the version of something that does not tell it itself: the package system, of its Debian package."""
    return ("dpkg-query", "-W", "-f", "${Version}", name)


def newest(pattern: str) -> str | None:
    """The last by name of the files that match an absolute pattern."""
    if not pattern.startswith("/"):
        return None
    places = sorted(Path("/").glob(pattern.lstrip("/")))
    return str(places[-1]) if places else None


def present(need: str) -> bool:
    return (newest(need) if need.startswith("/") else shutil.which(need)) is not None
