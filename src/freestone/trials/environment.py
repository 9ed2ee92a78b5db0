"""What a measured program finds in its environment: the lab's own, without what steers an allocator or the loader.

A variable that is left over in a shell (``MALLOC_ARENA_MAX``, ``MIMALLOC_ARENA_EAGER_COMMIT``) steers some of the
allocators that are compared and not the others, and nobody sees it in the result. Pure functions.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from typing import Final

from freestone.records.schema import Configuration, Environment, Workload

_STEERING: Final = re.compile(
    r"MALLOC_.*"  # glibc's old names, and jemalloc's MALLOC_CONF
    r"|GLIBC_TUNABLES"
    r"|LD_.*"  # another loader path may be another libc, or another allocator
    r"|FREESTONE_OPTIONS"
    r"|MIMALLOC_.*"
    r"|JEMALLOC_.*|[A-Z_]*MALLOC_CONF"  # jemalloc under a prefix reads _RJEM_MALLOC_CONF, JE_MALLOC_CONF
    r"|TCMALLOC_.*|HEAPPROFILE|HEAPCHECK|HEAP_(?:PROFILE|CHECK)_.*|PPROF_.*"
    r"|TBB_.*"
    r"|SNMALLOC_.*|RPMALLOC_.*|SCUDO_.*|HARDENED_MALLOC_.*"
    r"|PYTHONMALLOC(?:STATS)?",
    re.DOTALL,  # a name may hold any byte
)

_TOLD: Final = re.compile(r"GOGC|GOMEMLIMIT|GODEBUG|PYTHON_GIL|OMP_NUM_THREADS|LC_ALL|LANG")
"""Beside what steers: what runtimes read to size their heaps and their threads. Short words, and nobody's secrets."""

_SESSION: Final = re.compile(
    r"_|SHLVL|PWD|OLDPWD|COLUMNS|LINES|TERM|TERM_.*|COLORTERM|VTE_VERSION|WINDOWID|WINDOWPATH|DISPLAY|WAYLAND_DISPLAY"
    r"|XAUTHORITY|SSH_.*|GPG_.*|TMUX.*|STY|SCREEN.*|DBUS_.*|XDG_SESSION_.*|XDG_VTNR|XDG_SEAT.*|INVOCATION_ID"
    r"|JOURNAL_STREAM|SYSTEMD_EXEC_PID|MANAGERPID|MAKEFLAGS|MFLAGS|MAKELEVEL|PYTEST_.*"
    r"|GITHUB_.*|RUNNER_.*|ACTIONS_.*|CI_(?:JOB|PIPELINE)_.*|SLURM.*|_*DASK_.*"
)
"""Of the terminal, the login or the job in which somebody happens to sit. They differ each time and say nothing."""

_FILLER: Final = "FREESTONE_FILL_"
_FILLED_VARIABLES: Final = 8
_FILLED_BYTES: Final = 1024
_WITNESSED_NAME: Final = 64
_WITNESSED_VALUE: Final = 1024


def steers(name: str) -> bool:
    """Whether an allocator, its host language's memory or the dynamic loader reads a variable of this name."""
    return _STEERING.fullmatch(name) is not None


def describe(inherited: Mapping[str, str], *, kept: bool) -> Environment:
    """The environment of this process as it goes into the record.

    Args:
        inherited: ``os.environ``.
        kept: whether what steers an allocator stays in it.
    """
    steering = {name: value for name, value in inherited.items() if steers(name)}
    told = {name: value for name, value in inherited.items() if _TOLD.fullmatch(name)}
    others = sorted(
        name for name in inherited if not steers(name) and not _TOLD.fullmatch(name) and not _SESSION.fullmatch(name)
    )
    whole = hashlib.sha256()
    for name in others:
        whole.update(os.fsencode(name) + b"=" + os.fsencode(inherited[name]) + b"\0")
    return Environment(
        kept=kept,
        told=_speakable({**told, **steering} if kept else told),
        taken_out=_speakable({} if kept else steering),
        others={_plain(name): hashlib.sha256(os.fsencode(inherited[name])).hexdigest()[:2] for name in others},
        others_sha256=whole.hexdigest(),
    )


def overridden(
    workload: Workload, configuration: Configuration | None, inherited: Mapping[str, str]
) -> dict[str, str | None]:
    """What a program finds that differs from this process's environment; None for what is taken out."""
    taken = {} if workload.keep_environment else {name: None for name in inherited if steers(name)}
    return {**taken, **workload.environment, **(configuration.environment if configuration else {})}


def in_force(workload: Workload, configuration: Configuration | None, inherited: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of a program, without what the lab puts in for its own purposes."""
    merged = {**inherited, **overridden(workload, configuration, inherited)}
    return {name: value for name, value in merged.items() if value is not None}


def under_test(configuration: Configuration) -> dict[str, str]:
    """The settings that every process of the program has to find, as it is proved: those that steer an allocator.

    What a witness cannot say in a line of its own (very long values, other than ASCII) is left out.
    """
    return {
        name: value
        for name, value in configuration.environment.items()
        if steers(name) and len(name) < _WITNESSED_NAME and len(value) < _WITNESSED_VALUE and value.isascii()
    }


def steered(found: Iterable[tuple[str, str]], given: Mapping[str, str]) -> dict[str, str]:
    """What steers an allocator in a process and was not given to the program: its own scripts have set it.

    The loader's variables (many programs are scripts that set ``LD_LIBRARY_PATH``) choose no allocator unseen.

    Args:
        found: variables and values that processes found.
        given: the program's environment.
    """
    return {
        name: value
        for name, value in found
        if steers(name) and not name.startswith(("PYTHON", "LD_")) and _plain(given.get(name, "")) != value
    }


def fillers(workload: Workload, configuration: Configuration, inherited: Mapping[str, str]) -> dict[str, str]:
    """Variables without a meaning that bring every configuration's environment to the same size.

    Environment and arguments lie on the stack below which main begins, so a setting of one configuration alone moves
    the whole stack, by which a program can get several per cent slower or faster (Mytkowicz et al., *Producing Wrong
    Data Without Doing Anything Obviously Wrong!*, ASPLOS 2009). What settings add is rounded up in variables and bytes.
    """
    without = in_force(workload, None, inherited)
    held = in_force(workload, configuration, inherited)
    count = _FILLED_VARIABLES - (len(held) - len(without)) % _FILLED_VARIABLES
    found = {f"{_FILLER}{number}": "" for number in range(count)}
    found[f"{_FILLER}0"] = "x" * (-(_bytes(held) - _bytes(without) + _bytes(found)) % _FILLED_BYTES)
    return found


def _bytes(environment: Mapping[str, str]) -> int:
    return sum(len(os.fsencode(name)) + len(os.fsencode(value)) + 2 for name, value in environment.items())


def _speakable(environment: Mapping[str, str]) -> dict[str, str]:
    return {_plain(name): _plain(value) for name, value in environment.items()}


def _plain(text: str) -> str:
    """Bytes that are not UTF-8 arrive as lone surrogates, which JSON cannot hold."""
    return text.encode("utf-8", "backslashreplace").decode()
