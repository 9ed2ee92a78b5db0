"""A real scheduler of Dask with workers in folders of their own, any of which can be killed."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    listening = [socket.socket() for _ in range(count)]
    for each in listening:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in listening]
    for each in listening:
        each.close()
    return ports


class Cluster:
    """A scheduler, and workers by name."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        """Start the scheduler.

        Args:
            folder: for logs and caches, a folder below it for each.
            environment: of all that is started.
        """
        self.folder, self.environment = folder, environment
        (port,) = free_ports(1)
        self.address = f"tcp://127.0.0.1:{port}"
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.start("scheduler", "--host", "127.0.0.1", "--port", str(port))

    def start(self, what: str, *words: str, processor: int | None = None, name: str | None = None) -> None:
        """Start a scheduler or a worker, on one processor or on all."""
        home = self.folder / (name or what)
        home.mkdir(exist_ok=True)
        pinned = [] if processor is None else ["taskset", "-c", str(processor)]
        with (home / "log").open("ab") as log:
            self.running[name or what] = subprocess.Popen(
                [*pinned, sys.executable, "-m", "distributed.cli.dask_" + what, *words, "--no-dashboard"],
                cwd=home,
                env={**self.environment, "XDG_CACHE_HOME": str(home / "cache")},
                stdout=log,
                stderr=log,
            )

    def worker(self, kind: str, processor: int | None = None) -> None:
        """Start a worker that has a resource of this name, one task at a time."""
        words = [self.address, "--nthreads", "1", "--no-nanny", "--resources", f"{kind}=1"]
        self.start("worker", *words, processor=processor, name=kind)

    def kill(self, name: str) -> None:
        """Take a worker away, without a word to it."""
        self.running[name].kill()
        self.running[name].wait()

    def end(self) -> None:
        """End all that runs."""
        for process in self.running.values():
            process.kill()
            process.wait()
