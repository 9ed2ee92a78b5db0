"""A server as what is measured: begun by the launcher, waited for, driven by a load from outside, stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from freestone.records.schema import Service
from freestone.trials import escort, launch, load_figures, tree
from freestone.trials.escort import Errand
from freestone.trials.launch import LaunchReading, LaunchRequest
from freestone.trials.load_figures import LoadFigures
from freestone.trials.offspring import Offspring
from freestone.trials.under_load import UnderLoad

POLL_S = 0.05
SAMPLE_S = 1.0
"""How often whoever watches is told: often enough for a person, too seldom to take time from what is measured."""

LONGEST_OUTPUT = 1 << 20
"""Bytes of a load's output that are read, from its end."""

NO_MEASUREMENT: Final = "the load is no measurement: "

Phase = Literal["starting", "under load", "stopping"]


FIRST_ASKED_S = 10.0
"""Seconds within which it must be known that nobody answers yet."""


@dataclass(frozen=True)
class Moment:
    """The server now: what it is doing, for how long, and what its tree holds."""

    phase: Phase
    since_s: float
    rss_kib: int


Watch = Callable[[Moment], None]


class Occupied(RuntimeError):
    """Something answers before the server is begun; the message is one line."""


@dataclass(frozen=True)
class Driven:
    """What became of driving a server.

    ``broken`` says why there are no figures, in one line. ``died`` says when the server ended by itself, ``overdue``
    that it did not end when it was told to.
    """

    told: LoadFigures | None = None
    under_load: UnderLoad | None = None
    broken: str | None = None
    died: Literal["before it was ready", "under load"] | None = None
    overdue: bool = False
    ignoring: frozenset[int] = frozenset()
    """Processes that were seen to ignore SIGCHLD."""


def serve(
    request: LaunchRequest,
    service: Service,
    environment: Mapping[str, str],
    scratch: Path,
    watch: Watch,
    begun: launch.Begun = launch.unobserved,
) -> tuple[LaunchReading, Driven]:
    """Run one server from its start to its end.

    Args:
        request: how the server is started.
        service: how it is waited for, driven and stopped.
        environment: of the commands that wait and drive; nothing is preloaded under them.
        scratch: a folder for their output.
        watch: told now and then how the server is.
        begun: told the launcher's number as soon as it has one.

    Raises:
        Occupied: something answers already; nothing was started.
        ResultLost, LauncherBroken, NativePartMissing: as for :func:`freestone.trials.launch.launch`.
    """
    client = _Client(environment, request.directory, scratch)
    asked_s = time.monotonic()
    if client.asks(service.ready, FIRST_ASKED_S):
        raise Occupied(
            f"'{service.ready}' succeeds before the server is started: another one answers there, or it does not ask"
        )
    if time.monotonic() - asked_s >= FIRST_ASKED_S:
        raise Occupied(
            f"'{service.ready}' has no answer within {FIRST_ASKED_S:g} s before the server is started: another one "
            "holds its place and does not answer, or it waits by itself; it has to say at once whether anybody is there"
        )
    with launch.begun(request) as launcher:
        begun(launcher.process.pid)
        server = _Server(launcher.process, watch)
        driven = _drive(server, client, service)
        if driven.died is None:
            overdue = not server.stop(service.stop_timeout_s)
            driven = replace(driven, overdue=overdue)
        if driven.overdue:
            launcher.process.send_signal(signal.SIGTERM)
        return launch.finish(launcher, request), replace(driven, ignoring=frozenset(server.ignoring))


def failure(driven: Driven, service: Service, reading: LaunchReading, ended: str | None) -> str | None:
    """Why a server's run is no measurement, in one line; None where it is one.

    Args:
        driven: what became of driving it.
        service: how it was asked to stop.
        reading: how it ended.
        ended: that end in words, where it is not exit status 0.
    """
    if reading.state == "timeout":
        return ended
    if driven.died is not None:
        background = "; a server must stay in the foreground" if ended is None else ""
        return f"the server ended {driven.died}: {ended or 'exit status 0'}{background}"
    if driven.broken is not None:
        return driven.broken
    if driven.overdue:
        return f"the server still ran {service.stop_timeout_s:g} s after SIGTERM"
    if reading.signal == signal.SIGTERM or reading.exit_code == 128 + signal.SIGTERM:
        return None
    return None if ended is None else f"the server was told to stop and ended otherwise: {ended}"


class _Client:
    """Runs the commands that ask and drive, by a shell, outside of what is measured."""

    def __init__(self, environment: Mapping[str, str], directory: str | None, scratch: Path) -> None:
        self._environment = {name: value for name, value in environment.items() if name != "LD_PRELOAD"}
        self._directory = directory
        self.output = scratch / "load.stdout"
        self.complaint = scratch / "load.stderr"

    @contextlib.contextmanager
    def begun(self, command: str) -> Iterator[Offspring]:
        """Start a command. Whoever enters this ends it."""
        with self.output.open("wb") as output, self.complaint.open("wb") as complaint:
            errand = Errand(command, output, complaint, None, self._environment, self._directory)
            with escort.begun(errand) as offspring:
                yield offspring

    def asks(self, command: str, timeout_s: float = 5.0) -> bool:
        """Whether a command succeeds, soon."""
        with self.begun(command) as asking:
            try:
                return asking.process.wait(timeout_s) == 0
            except subprocess.TimeoutExpired:
                return False
            finally:
                asking.end()

    def last_complaint(self) -> str:
        """The last line that the command wrote, as the end of a sentence."""
        for file in (self.complaint, self.output):
            lines = [line.strip() for line in _tail(file).splitlines() if line.strip()]
            if lines:
                return f": {lines[-1][:160]}"
        return ""


class _Server:
    """The server below its launcher, while it runs."""

    def __init__(self, launcher: subprocess.Popen[bytes], watch: Watch) -> None:
        self.launcher = launcher
        self._watch = watch
        self._phase: Phase = "starting"
        self._since = self._sampled = time.monotonic()
        self.ignoring: set[int] = set()

    def enter(self, phase: Phase) -> None:
        self._phase, self._since = phase, time.monotonic()

    def has_ended(self) -> bool:
        return self.launcher.poll() is not None

    def reading(self) -> tree.TreeReading:
        found = tree.read(self.launcher.pid)
        self.ignoring |= found.ignoring
        return found

    def look(self) -> None:
        """Tell whoever watches, where it is time to."""
        now = time.monotonic()
        if now - self._sampled >= SAMPLE_S:
            self._sampled = now
            self._watch(Moment(self._phase, now - self._since, self.reading().rss_kib))

    def stop(self, timeout_s: float) -> bool:
        """Ask it to end, as an operator would; whether it did in time."""
        self.enter("stopping")
        first = tree.first_child(self.launcher.pid)
        if first is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(first, signal.SIGTERM)
        until = time.monotonic() + timeout_s
        while not self.has_ended():
            if time.monotonic() > until:
                return False
            self.look()
            time.sleep(POLL_S)
        return True


def _drive(server: _Server, client: _Client, service: Service) -> Driven:
    until = time.monotonic() + service.ready_timeout_s
    while not client.asks(service.ready):
        if server.has_ended():
            return Driven(died="before it was ready")
        if time.monotonic() > until:
            return Driven(
                broken=f"the server was not ready after {service.ready_timeout_s:g} s{client.last_complaint()}"
            )
        server.look()
        time.sleep(POLL_S)
    if server.has_ended():
        return Driven(died="before it was ready")
    server.enter("under load")
    before, begun_s = server.reading(), time.monotonic()
    with client.begun(service.load) as driving:
        load = driving.process
        try:
            while load.poll() is None:
                if server.has_ended():
                    return Driven(died="under load")
                server.look()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    load.wait(POLL_S)
            wall_s = time.monotonic() - begun_s
            after, ended_s = server.reading(), time.monotonic()
        finally:
            driving.end()
    if server.has_ended():
        return Driven(died="under load")
    if load.returncode != 0:
        how = f"exit status {load.returncode}" if load.returncode > 0 else f"ended by signal {-load.returncode}"
        return Driven(broken=f"the load failed, {how}{client.last_complaint()}")
    try:
        told = load_figures.read(_tail(client.output), wall_s)
    except load_figures.NotUnderstood as error:
        return Driven(broken=f"{NO_MEASUREMENT}{error}")
    return Driven(told=told, under_load=UnderLoad.between(begun_s, before, ended_s, after))


def _tail(file: Path) -> str:
    if not file.exists():
        return ""
    with file.open("rb") as opened:
        opened.seek(max(0, opened.seek(0, os.SEEK_END) - LONGEST_OUTPUT))
        return opened.read(LONGEST_OUTPUT).decode("utf-8", "replace")
