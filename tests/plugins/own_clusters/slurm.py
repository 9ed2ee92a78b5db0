"""A real Slurm, controller and two nodes, without accounting; either node can be killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from own_clusters.dask import free_ports

NEEDED: Final = ("slurmctld", "slurmd", "sbatch", "munged")
NODES: Final = {"one": "rome", "two": "arm"}
"""Node -> its feature."""

UP_S: Final = 60.0

CONFIGURATION: Final = """
ClusterName=here
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
SlurmctldPort={ports[0]}
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/controller.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=10
KillWait=2
JobRequeue=1
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=one NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1 Feature=rome State=UNKNOWN
NodeName=two NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1 Feature=arm State=UNKNOWN
PartitionName=all Nodes=one,two Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str | None:
    """Why there can be no Slurm of one's own here; None where there can."""
    absent = [program for program in NEEDED if shutil.which(program) is None]
    if not absent and os.geteuid() == 0:
        return None
    return f"no Slurm of one's own without {', '.join(absent) or 'root'} (Debian: slurm-wlm, munge)"


class Cluster:
    """A controller and its nodes."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        """Args: folder: for all that it writes; one that is not there yet."""
        self.folder = folder
        self.conf = folder / "slurm.conf"
        self.environment = {**environment, "SLURM_CONF": str(self.conf)}
        """In which ``sbatch`` reaches the cluster."""
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, pinned: Mapping[str, int] | None = None) -> None:
        """Start all of it, and wait until both nodes are idle.

        Args:
            pinned: node -> the one processor that it and its jobs have; others have all.

        Raises:
            RuntimeError: they never are.
        """
        for name in ("munge", "state"):
            (self.folder / name).mkdir(parents=True, mode=0o755)
        key = self.folder / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        host = socket.gethostname().split(".")[0]
        self.conf.write_text(CONFIGURATION.format(host=host, folder=self.folder, ports=free_ports(3)))
        munge = [f"--{what}={self.folder}/munge/{what}" for what in ("socket", "pid-file", "log-file", "seed-file")]
        self._start(["munged", "--foreground", "--force", f"--key-file={key}", *munge])
        _until((self.folder / "munge" / "socket").exists)
        self._start(["slurmctld", "-D", "-f", str(self.conf)])
        for node in NODES:
            processor = (pinned or {}).get(node)
            words = [] if processor is None else ["taskset", "-c", str(processor)]
            self._start([*words, "slurmd", "-D", "-N", node, "-f", str(self.conf)])
        if not _until(lambda: self.idle() == "2"):
            raise RuntimeError((self.folder / "daemons.log").read_text(errors="replace")[-2000:])

    def said(self, *words: str) -> str:
        """What a command of Slurm prints.

        Raises:
            subprocess.CalledProcessError: it fails.
        """
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, check=True).stdout

    def idle(self) -> str:
        """How many nodes are; nothing while the controller does not answer."""
        words = ["sinfo", "-h", "-t", "idle", "-o", "%D"]
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, check=False).stdout.strip()

    def job(self, place: str) -> str:
        """The number of the one job of a place: its name ends with that of the place."""
        jobs = [line.split() for line in self.said("squeue", "-h", "-o", "%i %j").splitlines()]
        (found,) = [number for number, name in jobs if name.endswith(f"-{place}")]
        return found

    def end(self) -> None:
        """Cancel what runs, and end all of it."""
        subprocess.run(["scancel", "--user=root"], env=self.environment, capture_output=True, check=False)
        for process in reversed(self._running):
            process.terminate()
            process.wait(30)

    def _start(self, words: list[str]) -> None:
        with (self.folder / "daemons.log").open("ab") as log:
            self._running.append(subprocess.Popen(words, env=self.environment, stdout=log, stderr=log))


@contextlib.contextmanager
def started(folder: Path, environment: Mapping[str, str], pinned: Mapping[str, int] | None = None) -> Iterator[Cluster]:
    """A cluster that runs, and is ended."""
    cluster = Cluster(folder, environment)
    try:
        cluster.start(pinned)
        yield cluster
    finally:
        cluster.end()


def _until(condition: object) -> bool:
    assert callable(condition)
    end = time.monotonic() + UP_S
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
