"""Runs ``freestone-launch`` and reads the one JSON object it writes (see docs/reference/probes.md)."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from freestone import native
from freestone.trials.offspring import Offspring

CensusMethod = Literal["none", "perf", "ptrace"]

# Told to stop, the launcher needs its grace and then up to 5 s for what cannot be killed.
_LAUNCHER_PATIENCE_S = 15.0
_UNWRITTEN = 4
"""The launcher's exit status where it has a result and cannot write it."""

# So long after the time limit there must have been a result; a launcher that hangs must not hang the lab.
_LAUNCHER_SLACK_S = 60.0


class LauncherBroken(RuntimeError):
    """The launcher itself could not do its work; nothing is known of the program. The message is one line."""


class ResultLost(LauncherBroken):
    """There is no result of a program that was started, and often that is its own doing.

    It, or somebody else, ended the launcher before there was one; or it filled the disk, so that none could be written.
    """


class _Reading(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Survivor(_Reading):
    """A process that was still there after the first one had ended, and was ended by the launcher."""

    pid: int
    program: str


class CensusReading(_Reading):
    """What the kernel said of the processes of the tree; ``events`` are read by :mod:`freestone.trials.census`."""

    source: CensusMethod = "none"
    complete: bool = False
    reason: str | None = None
    events: list[list[Any]] = Field(default_factory=list)
    files: list[str] = Field(default_factory=list)
    """By perf, every file that was mapped as code anywhere in the tree, at any time; by ptrace, programs alone."""


class LaunchReading(_Reading):
    """The launcher's result. Fields that it leaves out could not be measured and are None.

    ``lost`` is never written: it stands in for a result when the launcher was killed.
    """

    version: Literal[1]
    state: Literal[
        "exited", "signaled", "timeout", "interrupted", "abandoned",
        "not-found", "no-interpreter", "not-executable", "bad-format", "files", "directory", "not-started",
        "lost",
    ]  # fmt: skip
    error: str | None = None
    pid: int | None = None
    started_monotonic_s: float = 0.0
    floor_kib: int = 0
    interrupted_by: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    wall_s: float = 0.0
    tree_wall_s: float | None = None
    user_s: float = 0.0
    sys_s: float = 0.0
    peak_rss_kib: int | None = None
    minor_faults: int | None = None
    major_faults: int | None = None
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    orphans: int = 0
    stopped: bool = False
    """Whether somebody stopped the launcher for a while, so that it saw late what ended meanwhile."""
    killed: bool = False
    abandoned: bool = False
    survivor_count: int = 0
    survivors: list[Survivor] = Field(default_factory=list)
    tree_peak_rss_kib: int | None = None
    series: list[tuple[float, int, int]] = Field(default_factory=list)
    counters: dict[str, int] = Field(default_factory=dict)
    census: CensusReading = CensusReading()


class Permissions(_Reading):
    """What this machine lets the launcher do."""

    perf: bool
    perf_reason: str | None = None
    ptrace: bool
    ptrace_reason: str | None = None
    counters: list[str] = Field(default_factory=list)


@dataclass(frozen=True)
class LaunchRequest:
    """One program to start.

    ``environment`` holds what differs from this process's environment, ``None`` for what is to be removed.
    ``result``, ``stdout`` and ``stderr`` are files to be written.
    """

    command: Sequence[str]
    result: Path
    stdout: Path
    stderr: Path
    stdin: Path | None = None
    """Read by the program from its beginning; None for an empty input."""
    environment: Mapping[str, str | None] = field(default_factory=dict)
    directory: str | None = None
    timeout_s: float | None = None
    sample_ms: float = 25.0
    census: CensusMethod = "none"
    counters: bool = True
    whole_tree: bool = False
    """Wait for the last process of the tree, however long it outlives the first."""


def command_line(request: LaunchRequest, launcher: Path) -> list[str]:
    """The launcher's command line for a request."""
    words = [str(launcher), "--result", str(request.result), "--parent", str(os.getpid())]
    words += ["--stdout", str(request.stdout), "--stderr", str(request.stderr)]
    if request.stdin is not None:
        words += ["--stdin", str(request.stdin)]
    words += ["--sample", f"{request.sample_ms:g}", "--census", request.census]
    if request.counters:
        words.append("--counters")
    if request.whole_tree:
        words.append("--whole-tree")
    if request.directory is not None:
        words += ["--directory", request.directory]
    if request.timeout_s is not None:
        words += ["--timeout", f"{request.timeout_s:.9f}"]
    for name, value in request.environment.items():
        words += ["--unset", name] if value is None else ["--env", f"{name}={value}"]
    return [*words, "--", *request.command]


Begun = Callable[[int], None]
"""Told the number of the launcher, below which the program will be, as soon as it runs."""


def unobserved(launcher: int) -> None:
    """Nobody looks."""


def launch(request: LaunchRequest, begun_by: Begun = unobserved) -> LaunchReading:
    """Start the program, wait for the end of its tree, return what it cost.

    Whatever interrupts the waiting (``KeyboardInterrupt``) first ends the whole tree, then goes on its way.

    Raises:
        ResultLost: the launcher was ended before it had a result, or could not write it.
        LauncherBroken: it could not be started, or could not do its work.
        NativePartMissing: it is not installed.
    """
    with begun(request) as launcher:
        begun_by(launcher.process.pid)
        return finish(launcher, request)


@contextlib.contextmanager
def begun(request: LaunchRequest) -> Iterator[Offspring]:
    """Start the launcher, which starts the program. Whoever enters this calls :func:`finish`, or leaves it broken off.

    An exception ends the whole tree: first as the launcher does it, then whatever it could not.

    Raises:
        LauncherBroken: it could not be started.
        NativePartMissing: it is not installed.
    """
    with Offspring.begun(lambda: _begin(request), request.environment.get("FREESTONE_WITNESS")) as launcher:
        try:
            yield launcher
        except BaseException:
            _stop(launcher.process)
            raise
        finally:
            if launcher.process.stderr is not None:
                launcher.process.stderr.close()


def _begin(request: LaunchRequest) -> subprocess.Popen[bytes]:
    words = command_line(request, native.path("freestone-launch"))
    try:
        # A session of its own: Ctrl-C in the terminal reaches this process alone, which then decides.
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=_without_preload(),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise LauncherBroken(f"cannot start {words[0]}: {error}") from error


def finish(launcher: Offspring, request: LaunchRequest) -> LaunchReading:
    """Wait for the end of the tree that was begun; errors are those of :func:`launch`."""
    process = launcher.process
    try:
        _, complaint = process.communicate(timeout=_limit_s(request))
    except subprocess.TimeoutExpired as error:
        raise ResultLost("the launcher did not end with the program's time limit and was killed") from error
    if process.returncode < 0:
        raise ResultLost(f"the launcher was ended by {_signal_name(-process.returncode)} while the program ran")
    said = _last_line(complaint) or f"the launcher failed with status {process.returncode}"
    if process.returncode == _UNWRITTEN:
        raise ResultLost(said)
    if process.returncode != 0:
        raise LauncherBroken(said)
    return read_result(request.result)


def read_result(path: Path) -> LaunchReading:
    """Parse a result file.

    Raises:
        LauncherBroken: it is missing or is not what the launcher writes.
    """
    try:
        return LaunchReading.model_validate_json(_plain(path.read_bytes()))
    except OSError as error:
        raise LauncherBroken(f"the launcher's result cannot be read: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise LauncherBroken(f"the launcher's result is damaged: {first['msg']} at {list(first['loc'])}") from error


@functools.cache
def permissions() -> Permissions:
    """What the launcher may do on this machine. Asked once per process.

    Raises:
        LauncherBroken: the launcher does not work.
        NativePartMissing: it is not installed.
    """
    words = [str(native.path("freestone-launch")), "--probe"]
    try:
        done = subprocess.run(words, capture_output=True, timeout=30, env=_without_preload(), check=False)
        return Permissions.model_validate_json(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValidationError) as error:
        raise LauncherBroken(f"{words[0]} --probe does not work: {error}".splitlines()[0]) from error


def _plain(text: bytes) -> bytes:
    r"""Bytes of a path that are not UTF-8 arrive as \udc80..\udcff; records are UTF-8, so they become \x80..\xff."""
    if b"\\udc" not in text:
        return text
    parts = text.split(b"\\udc")
    return parts[0] + b"".join(b"\\\\x" + part for part in parts[1:])


def _without_preload() -> dict[str, str]:
    """The launcher's own environment. The user's preload is for the program, which gets it through ``--env``."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def _limit_s(request: LaunchRequest) -> float | None:
    return None if request.timeout_s is None else request.timeout_s + _LAUNCHER_SLACK_S


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Have a launcher end its tree; there is no result."""
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)  # somebody may have stopped it
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_LAUNCHER_PATIENCE_S)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_line(complaint: bytes | None) -> str:
    lines = (complaint or b"").decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else ""
