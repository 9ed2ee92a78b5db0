"""Options of which programs are compared: several commands, lines for a shell, parameters that are gone through."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated

from cyclopts import Parameter

from freestone.commands.status import ExitStatus, Stop
from freestone.experiments import scan
from freestone.experiments.plan import PlanError
from freestone.records.schema import Workload

SHELL = "/bin/sh"
LONGEST_NAME = 60


@Parameter(name="*")
@dataclass(frozen=True)
class ProgramOptions:
    """What was asked for, beside the one program that stands behind ``--``."""

    commands: Annotated[
        list[str] | None,
        Parameter(
            name="--command",
            negative="",
            help="A program and its arguments in one word, as in 'sort big.txt'. May be given again, for several.",
        ),
    ] = None
    shell: Annotated[
        bool, Parameter(negative="", help="CMD, and each --command, is a line for a shell, in one word: 'a | b > c'.")
    ] = False
    scan: Annotated[
        list[str] | None,
        Parameter(
            negative="",
            help="NAME=VALUES, as in threads=1,2,4 or size=1k..64k*2: every value takes the place of {NAME} in CMD and "
            "around it. May be given again, for all combinations.",
        ),
    ] = None

    def given(self) -> dict[str, object]:
        """Option -> its value, None where it was not given."""
        return {"--command": self.commands, "--shell": self.shell or None, "--scan": self.scan}

    def programs(self, words: Sequence[str], name: str | None) -> list[Workload]:
        """A workload for each command, under a name of its own; no parameter is filled in yet.

        Args:
            words: what stands behind ``--``; may be empty where there are commands.
            name: what to call it, where there is one command.

        Raises:
            PlanError: a command is no program and arguments, or there are two of one kind.
            Stop: there is no program, or a line for a shell where none was asked for.
        """
        commands = [self._behind_dashes(words)] if words or not self.commands else []
        commands += [self._split(line) for line in self.commands or []]
        names = [name] if name is not None and len(commands) == 1 else _names(commands, self.shell)
        return [
            Workload(name=called, command=command, shell=self.shell)
            for called, command in zip(names, commands, strict=True)
        ]

    def scanned(self, workloads: Sequence[Workload], tell: Callable[[str], None]) -> list[Workload]:
        """A workload for every point of the scans.

        Args:
            tell: told in a line what looks like a parameter and is none.

        Raises:
            PlanError: a scan says nothing, or nothing uses it.
        """
        scans = scan.read(self.scan or [])
        scan.require_used(scans, workloads)
        for name in scan.unknown(scans, workloads):
            tell(f"{{{name}}} stays as it is: no --scan is called so")
        return [point for workload in workloads for point in scan.points(scans, workload)]

    def _behind_dashes(self, words: Sequence[str]) -> list[str]:
        if not words:
            return []  # told by whoever looks for the program
        if not self.shell:
            if re.search(r"\s", words[0].strip()) and shutil.which(words[0]) is None:
                raise Stop(f"program '{words[0]}' not found; {_instead(words)}", ExitStatus.NOT_FOUND)
            return list(words)
        if len(words) != 1:
            raise PlanError("--shell takes one word, the whole line in quotes: freestone compare --shell -- 'a | b'")
        return self._split(words[0])

    def _split(self, line: str) -> list[str]:
        if not line.strip():
            raise PlanError("a command is empty; it takes a program and its arguments, as in --command 'sort big.txt'")
        if self.shell:
            return [SHELL, "-c", line]
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise PlanError(f"--command {shlex.quote(line)}: {str(error).lower()}") from error
        operator = _operator(line)
        if operator is not None:
            raise PlanError(
                f"--command {shlex.quote(line)} has {operator}, which only a shell understands: add --shell"
            )
        return words


def _instead(lines: Sequence[str]) -> str:
    """What to write for whole lines, each in quotes as another tool takes them, where programs and arguments go."""
    shell = any(_operator(line) is not None for line in lines)
    first, *others = lines
    if not others and not shell:
        try:
            words = shlex.join(shlex.split(first))
        except ValueError:
            shell = True  # an open quotation: only a shell says what that is
        else:
            return f"a program and its arguments are words of their own: freestone compare -- {words}"
    if not others:
        return f"a whole line is for a shell: freestone compare --shell -- {shlex.quote(first)}"
    commands = " ".join(f"--command {shlex.quote(line)}" for line in lines)
    return f"several commands are given so: freestone compare {'--shell ' if shell else ''}{commands}"


def _operator(line: str) -> str | None:
    """What only a shell understands, outside of quotes; None where there is nothing of it."""
    outside = re.sub(r"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"", "_", line, flags=re.DOTALL)
    found = re.search(r"[|&;<>`\n]|\$[({\w]", outside)
    return None if found is None else repr(found[0])


def _names(commands: Sequence[Sequence[str]], shell: bool) -> list[str]:
    """What to call each: its program, or all of its command where two have one program."""
    lines = [command[2] if shell and command else shlex.join(command) for command in commands]
    if len(set(lines)) < len(lines):
        raise PlanError(f"two commands are the same: {max(lines, key=lines.count)}")
    short = [
        _program_of(line) if shell else PurePath(command[0]).name if command else ""
        for line, command in zip(lines, commands, strict=True)
    ]
    whole = [_clipped(line) for line in lines]
    if len(set(whole)) < len(whole):
        whole = lines
    return [one if short.count(one) == 1 else all_of_it for one, all_of_it in zip(short, whole, strict=True)]


def _program_of(line: str) -> str:
    """The first program of a line for a shell."""
    words = [word for word in line.split() if "=" not in word]
    return re.sub(r"[^\w.+{}-]", "", PurePath(words[0]).name) or "shell" if words else "shell"


def _clipped(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_NAME else line[: LONGEST_NAME - 3] + "..."


ONE_PROGRAM = ProgramOptions()
