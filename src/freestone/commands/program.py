"""The CMD a user gives after ``--``: found and executable, or one line that says why not; and the tool as it was typed.

Shared by the verbs.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
import stat
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from freestone.allocators import elf
from freestone.commands.status import ExitStatus, Stop
from freestone.records.schema import Workload


def tool_as_typed() -> str:
    """What starts the tool again: ``freestone`` where the shell finds it by its name, else the path that was typed."""
    started = sys.argv[0]
    if Path(started).name != "freestone" or started == shutil.which("freestone"):
        return "freestone"
    return shlex.quote(started)


def found(command: Sequence[str], env: Sequence[str], *, verb: str) -> tuple[Path, Workload]:
    """The file that a command executes, and the workload that running it here is.

    Args:
        command: program and arguments.
        env: as ``--env`` takes it.
        verb: whose command it is.

    Raises:
        PlanError, Stop: as :func:`settings` and :func:`require`.
    """
    environment = settings(env)
    require_last(command)
    executable = require(command, {**os.environ, **environment}, verb=verb)
    return executable, Workload(
        name=executable.name, command=list(command), environment=environment, directory=os.getcwd()
    )


def require(
    command: Sequence[str], environment: Mapping[str, str], directory: str = ".", *, verb: str = "compare"
) -> Path:
    """The file that running ``command`` would execute, found as a shell finds it.

    Args:
        command: program and arguments.
        environment: where its PATH is looked up.
        directory: where it is going to run.
        verb: the one that was asked to run it, for the example in an error.

    Raises:
        Stop: no command or one that cannot be (2), not found (127) or not executable (126), as in shells.
    """
    if not command or not command[0]:
        raise Stop(
            f"no program given; write it after --, as in: freestone {verb} -- python3 program.py", ExitStatus.USAGE
        )
    name = command[0]
    if "\0" in "".join(command):
        raise Stop("a command cannot hold a NUL character", ExitStatus.USAGE)
    unfit: Path | None = None
    for candidate in _candidates(name, environment.get("PATH") or os.defpath):
        try:
            mode = (directory / candidate).stat().st_mode
        except OSError as error:
            if isinstance(error, PermissionError):
                unfit = candidate
            continue
        if stat.S_ISREG(mode) and os.access(directory / candidate, os.X_OK):
            return candidate
        unfit = unfit or candidate
    if unfit is None:
        hint = "" if verb == "run" else _before_dashes(command)
        raise Stop(f"program '{name}' not found{hint}", ExitStatus.NOT_FOUND)
    why = "it is a folder" if (directory / unfit).is_dir() else "permission denied"
    raise Stop(f"program '{unfit}' is not executable: {why}", ExitStatus.NOT_EXECUTABLE)


def _before_dashes(command: Sequence[str]) -> str:
    """What is said of a word that was taken for the program, where the program is behind a ``--`` further on."""
    if "--" not in sys.argv:
        return ""
    at = sys.argv.index("--")
    behind = sys.argv[at + 1 :]
    more = len(command) > len(behind) > 0 and list(command[-len(behind) :]) == behind
    if not more or command[0] not in sys.argv[1:at]:
        return ""
    return f"; it stands before --, and the program, {behind[0]}, behind it: leave it out, or quote what it belongs to"


def settings(pairs: Sequence[str]) -> dict[str, str]:
    """``NAME=VALUE`` words as a mapping; ``NAME`` alone stands for its value in this process's environment.

    Raises:
        Stop: a word is of neither form, or the variable is not set here (2).
    """
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals and name in os.environ:
            value = os.environ[name]
        elif not equals or not name:
            raise Stop(f"--env takes NAME=VALUE, or NAME of a variable that is set, not '{pair}'", ExitStatus.USAGE)
        found[name] = value
    return found


def require_last(words: Sequence[str]) -> None:
    """Refuse options behind a program that stands without ``--``: they may be the program's.

    Args:
        words: the program and its arguments, as they were taken from the command line.

    Raises:
        Stop: there are some (2).
    """
    if words and "--" not in sys.argv and words[0] in sys.argv[1:] and sys.argv[-len(words) :] != list(words):
        raise Stop(
            f"options behind {words[0]} would be {tool_as_typed()}'s: write -- before it, and they are the program's",
            ExitStatus.USAGE,
        )


def env_as_here(words: Sequence[str]) -> list[str]:
    """A command line for other places, in which each ``--env NAME`` has the value that it has in this process.

    Args:
        words: the verb and what is behind it.

    Raises:
        Stop: as :func:`settings`.
    """
    found: list[str] = []
    left = iter(words)
    for word in left:
        if word == "--":
            return [*found, word, *left]
        option, sign, value = word.partition("=")
        if option != "--env":
            found.append(word)
            continue
        for pair in [value] if sign else list(itertools.islice(left, 1)):
            ((name, as_here),) = settings([pair]).items()
            found += [option, f"{name}={as_here}"]
    return found


def _candidates(name: str, path: str) -> list[Path]:
    if "/" in name:
        return [Path(name)]
    return [Path(folder or ".") / name for folder in path.split(os.pathsep)]


_ALLOCATORS = re.compile(r"lib(jemalloc|mimalloc|tcmalloc|tbbmalloc|snmallocshim|rpmalloc|hardened_malloc|freestone)\b")
"""Libraries that a program may be linked against for its malloc."""


@dataclass(frozen=True)
class Obstacle:
    """What stands between a program and a preloaded allocator."""

    why: str
    """What follows the program's name in a sentence."""
    fatal: bool = False
    """Whether the program would not start with the preload."""


def obstacle(executable: Path, library: Path, title: str = "libfreestone") -> Obstacle | None:
    """Why ``library`` would not serve a program by preload; None when it should.

    Args:
        executable: what is going to be run.
        library: the allocator's.
        title: how the allocator is called.
    """
    facts = elf.inspect(executable)
    for _ in range(4):  # a script's interpreter may be a script
        if facts.script_interpreter is None:
            break
        facts = elf.inspect(facts.script_interpreter)
    not_served = f"; {title} will not serve it"
    libc = elf.inspect(library).libc
    foreign = "unknown" not in (facts.libc, libc) and None not in (facts.libc, libc) and facts.libc != libc
    if facts.own_freestone:
        children = "nor the programs it starts" if foreign else "but does programs it starts"
        reach = "does not reach it" if facts.static else "does not replace that"
        return Obstacle(f"brings libfreestone itself and is served by that: the preload {reach}, {children}", foreign)
    if facts.static:
        return Obstacle("is static" + not_served)
    if facts.setuid and not _is_own(facts.path):
        return Obstacle("is set-user-ID" + not_served)
    if facts.file_capabilities and os.geteuid() != 0:
        return Obstacle("has file capabilities" + not_served)
    if foreign:
        return Obstacle(f"is built for {facts.libc}{not_served}, which is built for {libc}, nor what it starts", True)
    if facts.own_malloc is None:
        return None
    return Obstacle(f"has a malloc of its own ({facts.own_malloc}){not_served}", fatal=facts.sanitizer is not None)


def brings_malloc(executable: Path) -> bool:
    """Whether a program is served by another allocator than the C library's where nothing is preloaded."""
    facts = elf.inspect(executable)
    return facts.own_malloc is not None or any(_ALLOCATORS.match(soname) for soname in facts.needed)


def _is_own(path: Path) -> bool:
    """Whether a set-ID bit changes nothing, because we are that user and group already."""
    try:
        status = path.stat()
    except OSError:
        return False
    user = not status.st_mode & stat.S_ISUID or status.st_uid == os.geteuid()
    group = not status.st_mode & stat.S_ISGID or status.st_gid == os.getegid()
    return user and group
