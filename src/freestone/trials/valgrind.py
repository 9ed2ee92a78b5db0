"""Puts valgrind before a workload and reads what it left: every program of the tree has a log and a file of its own."""

from __future__ import annotations

import contextlib
import functools
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from freestone.records.schema import Workload
from freestone.trials import preload

_OWN_DOING = re.compile(
    r"^(?:==|--|\*\*)\d+(?:==|--|\*\*) (?:valgrind: )?(Unrecognised instruction .*|FATAL: .*)$|^valgrind: (.+)$",
    re.MULTILINE,
)


class NoValgrind(RuntimeError):
    """valgrind is not here or does not work; the message is one line that says how to get it."""


@dataclass(frozen=True)
class Traces:
    """What valgrind left of one run.

    ``logs`` and ``files`` are by process. A child that was forked and executed nothing has no log; its file, where the
    tool writes one, holds what its parent had counted before the fork as well.
    """

    logs: dict[int, str]
    files: dict[int, str]

    @property
    def images(self) -> dict[int, str]:
        """Files of processes that began with a program of their own."""
        return {pid: text for pid, text in self.files.items() if pid in self.logs}

    @property
    def forks(self) -> int:
        return len(self.files.keys() - self.logs.keys())

    def complaint(self) -> str | None:
        """What valgrind itself stumbled over; None where it said nothing of the kind."""
        for text in self.logs.values():
            found = _OWN_DOING.search(text)
            if found:
                return " ".join((found[1] or found[2]).split())[:160]
        return None


@functools.cache
def version() -> str:
    """As in ``3.19.0``.

    Raises:
        NoValgrind: there is none, or it does not start.
    """
    try:
        done = subprocess.run([_program(), "--version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise NoValgrind(f"valgrind does not work: {str(error).splitlines()[0]}") from error
    return done.stdout.strip().removeprefix("valgrind-")


@contextlib.contextmanager
def folder(scratch: Path) -> Iterator[Path]:
    """A folder for what valgrind writes, gone afterwards; programs that change their user write there too."""
    made = preload.speakable_folder(scratch, "valgrind-")
    try:
        made.chmod(0o1733)
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def under(tool: str, workload: Workload, traces: Path, *options: str) -> Workload:
    """The workload with valgrind before its command.

    Args:
        tool: cachegrind, memcheck.
        traces: what :func:`folder` gave; read it with :func:`read` when the run has ended.
        options: of the tool. ``{}`` in them is the name of a file for each process.

    Raises:
        NoValgrind: there is none.
    """
    place = str(traces).replace("%", "%%")
    words = [
        *(_program(), f"--tool={tool}", "--trace-children=yes", "--child-silent-after-fork=yes", "--fair-sched=try"),
        f"--log-file={place}/log.%p",
        *(option.replace("{}", f"{place}/file.%p") for option in options),
    ]
    # Neither the user's options nor a server of debugging information belong into a count.
    own = {"VALGRIND_OPTS": "", "DEBUGINFOD_URLS": ""}
    return workload.model_copy(
        update={
            "command": [*words, *workload.command],
            "environment": {**workload.environment, **own},
            "reads": "process",
        }
    )


def read(traces: Path) -> Traces:
    """What was left in a folder."""
    return Traces(_by_process(traces, "log"), _by_process(traces, "file"))


def _by_process(traces: Path, kind: str) -> dict[int, str]:
    found = {}
    for path in sorted(traces.glob(f"{kind}.*")):
        number = path.name.rpartition(".")[2]
        if number.isdigit():
            found[int(number)] = path.read_text(encoding="utf-8", errors="backslashreplace")
    return found


def _program() -> str:
    program = shutil.which("valgrind")
    if program is None:
        raise NoValgrind("instructions are counted by valgrind, which is not here; install the package valgrind")
    return program
