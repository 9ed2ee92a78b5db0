"""Where one program works under one allocator: its folder, its environment, what it runs, and the facts it leaves."""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COMMAND_S = 3600.0
"""Far beyond what any command takes; the trial as a whole has a limit of its own, which is shorter."""
STARTING_S = 120.0


class Failure(Exception):
    """The program did not do what it was asked; the text is a fact like any other, so it holds nothing that varies."""


@dataclass(frozen=True)
class Ran:
    """What a command said, and how it ended."""

    status: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        return self.stdout.decode(errors="replace").strip()


@dataclass
class Room:
    """The room of one trial. ``facts`` are compared between the allocators; ``complaints`` are for a person to read."""

    folder: Path
    preload: str
    notes: Path
    seconds: float
    user: str | None = None
    options: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            **(extra or {}),
            **({"FREESTONE_OPTIONS": self.options} if self.options else {}),
            "LD_PRELOAD": self.preload,
            "PROVIDER_NOTES": str(self.notes),
        }

    def rights(self) -> dict[str, Any]:
        """What makes a command run as this room's user; nothing where it has none, or is no root to begin with."""
        if self.user is None or os.geteuid() != 0:
            return {}
        account = pwd.getpwnam(self.user)
        return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}

    def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        extra: Mapping[str, str] | None = None,
        statuses: Iterable[int] | None = (0,),
        cwd: Path | None = None,
    ) -> Ran:
        """Runs ``command``; a status that is not among ``statuses`` fails the trial (None: any will do)."""
        done = subprocess.run(
            command,
            cwd=cwd or self.folder,
            env=self.environment(extra),
            input=stdin,
            capture_output=True,
            timeout=COMMAND_S,
            check=False,
            **self.rights(),
        )
        if statuses is not None and done.returncode not in statuses:
            self.complain(command[0], done.stdout, done.stderr)
            raise Failure(f"{Path(command[0]).name} ended with {done.returncode}")
        return Ran(done.returncode, done.stdout, done.stderr)

    def start(
        self, command: Sequence[str], log: str, extra: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Starts ``command`` and leaves it running; what it says goes to the file ``log`` of the room."""
        with open(self.folder / log, "ab") as file:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                env=self.environment(extra),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                **self.rights(),
            )

    @contextmanager
    def server(
        self, command: Sequence[str], ready: Callable[[], bool], log: str, extra: Mapping[str, str] | None = None
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A server that is up, and is no more afterwards, however the block ends."""
        process = self.start(command, log, extra)
        try:
            self.wait(ready, process, log)
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()

    def wait(self, ready: Callable[[], bool], process: subprocess.Popen[bytes] | None = None, log: str = "") -> None:
        """Waits until ``ready``; fails when ``process`` ends before, or when it takes for ever."""
        end = time.monotonic() + STARTING_S
        while not ready():
            if process is not None and process.poll() is not None:
                self.complain(str(process.args), (self.folder / log).read_bytes(), b"")
                raise Failure(f"a server ended with {process.returncode} before it answered")
            if time.monotonic() > end:
                raise Failure("what was waited for did not come")
            time.sleep(0.1)

    def stop(self, process: subprocess.Popen[bytes], number: int, what: str) -> None:
        """Sends a signal that asks ``process`` to end, and notes how it did."""
        process.send_signal(number)
        try:
            self.fact(what, process.wait(STARTING_S))
        except subprocess.TimeoutExpired as error:
            raise Failure(f"{what}: it does not end") from error

    def fact(self, name: str, value: object) -> None:
        self.facts[name] = str(value)

    def digest(self, name: str, data: bytes) -> None:
        self.fact(name, hashlib.sha256(data).hexdigest()[:16])

    def complain(self, who: str, *said: bytes) -> None:
        text = "\n".join(part.decode(errors="replace")[-3000:] for part in said if part)
        self.complaints.append(f"{who}:\n{text}")

    def own(self, path: Path) -> Path:
        """Gives what was put into the room to its user."""
        rights = self.rights()
        if rights:
            for each in (path, *path.rglob("*")):
                os.chown(each, rights["user"], rights["group"])
        return path


def program(name: str, *folders: str) -> str:
    """The path of a program, on PATH or in one of ``folders`` (patterns); Failure where it is nowhere."""
    found = shutil.which(name)
    for pattern in folders:
        places = sorted(Path("/").glob(f"{pattern.lstrip('/')}/{name}"))
        found = str(places[-1]) if places else found
    if found is None:
        raise Failure(f"{name} is not installed")
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
