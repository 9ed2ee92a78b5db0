"""A real Slurm, controller and two nodes on this machine, without accounting; a node is lost in the middle."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ordered import TRIALS, Ordered, begun
from waiting import soon

from freestone.records import store

COMMAND = [sys.executable, "-m", "freestone"]
NEEDED = ("slurmctld", "slurmd", "sbatch", "munged")

CONFIGURATION = """
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


def _free_ports(count: int) -> list[int]:
    listening = [socket.socket() for _ in range(count)]
    for each in listening:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in listening]
    for each in listening:
        each.close()
    return ports


@pytest.fixture
def cluster(tmp_path: Path, environment: dict[str, str]) -> Iterator[dict[str, str]]:
    """An environment in which ``sbatch`` reaches the cluster."""
    missing = [program for program in NEEDED if shutil.which(program) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"no Slurm of one's own without {', '.join(missing) or 'root'} (Debian: slurm-wlm, munge)")
    folder = tmp_path / "slurm"
    for name in ("munge", "state"):
        (folder / name).mkdir(parents=True, mode=0o755)
    tmp_path.chmod(0o755)
    key = folder / "munge" / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    conf = folder / "slurm.conf"
    conf.write_text(CONFIGURATION.format(host=socket.gethostname().split(".")[0], folder=folder, ports=_free_ports(3)))
    told = {**environment, "SLURM_CONF": str(conf)}
    munge = [f"--{what}={folder}/munge/{what}" for what in ("socket", "pid-file", "log-file", "seed-file")]
    daemons = [
        ["munged", "--foreground", "--force", f"--key-file={key}", *munge],
        ["slurmctld", "-D", "-f", str(conf)],
        ["slurmd", "-D", "-N", "one", "-f", str(conf)],
        ["slurmd", "-D", "-N", "two", "-f", str(conf)],
    ]
    running = []
    with (folder / "daemons.log").open("wb") as log:
        for words in daemons:
            running.append(subprocess.Popen(words, env=told, stdout=log, stderr=log))
            if words[0] == "munged":
                assert soon((folder / "munge" / "socket").exists)
    try:
        up = soon(
            lambda: (
                subprocess.run(
                    ["sinfo", "-h", "-t", "idle", "-o", "%D"], env=told, capture_output=True, check=False
                ).stdout.strip()
                == b"2"
            ),
            60,
        )
        assert up, (folder / "daemons.log").read_text(errors="replace")[-2000:]
        yield told
    finally:
        subprocess.run(["scancel", "--user=root"], env=told, capture_output=True, check=False)
        for process in reversed(running):
            process.terminate()
            process.wait(30)


def _said(words: list[str], environment: dict[str, str]) -> str:
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout


def _idle(environment: dict[str, str]) -> str:
    """How many nodes are; nothing while the controller does not answer."""
    words = ["sinfo", "-h", "-t", "idle", "-o", "%D"]
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False).stdout.strip()


def test_a_node_that_is_lost_costs_a_trial(cluster: dict[str, str], tmp_path: Path) -> None:
    ordered = Ordered(tmp_path, cluster, COMMAND, "slurm:rome,arm")
    assert begun(tmp_path / "results", 3)
    place = next(each for each in store.places(ordered.folder) if len(store.read_trials(each).records) >= 3)
    kept = (place / store.TRIALS_FILE).read_bytes()
    jobs = subprocess.run(
        ["squeue", "-h", "-o", "%i %j"], env=cluster, capture_output=True, text=True, check=True
    ).stdout
    (job,) = [line.split()[0] for line in jobs.splitlines() if line.split()[1] == f"freestone-{place.name}"]
    subprocess.run(
        ["scontrol", "requeue", job], env=cluster, check=True
    )  # as Slurm does by itself for a node that fails
    assert ordered.ended() == 0, ordered.said.read_text()
    assert ordered.trials() == {"slurm-arm": TRIALS, "slurm-rome": TRIALS}
    assert (place / store.TRIALS_FILE).read_bytes().startswith(kept.rpartition(b"\n")[0]), "nothing is measured twice"


def test_a_feature_that_no_node_has_costs_the_others_nothing(cluster: dict[str, str], tmp_path: Path) -> None:
    ordered = Ordered(tmp_path, cluster, COMMAND, "slurm:rome,riscv")
    assert ordered.ended() == 4
    assert ordered.trials() == {"slurm-rome": TRIALS}
    said = ordered.said.read_text()
    assert "slurm-riscv: sbatch: error: " in said
    assert "not finished: slurm-riscv; go on with: " in said
