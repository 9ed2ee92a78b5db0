"""A real Slurm, controller and two nodes on this machine, without accounting; a node is lost in the middle."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ordered import TRIALS, Ordered, begun
from own_clusters import slurm
from waiting import soon

from freestone.records import store

COMMAND = [sys.executable, "-m", "freestone"]


@pytest.fixture
def cluster(tmp_path: Path, environment: dict[str, str]) -> Iterator[slurm.Cluster]:
    lacking = slurm.missing()
    if lacking is not None:
        pytest.skip(lacking)
    tmp_path.chmod(0o755)
    with slurm.started(tmp_path / "slurm", environment) as found:
        yield found


def test_a_node_that_is_lost_costs_a_trial(cluster: slurm.Cluster, tmp_path: Path) -> None:
    ordered = Ordered(tmp_path, cluster.environment, COMMAND, "slurm:rome,arm")
    assert begun(tmp_path / "results", 3)
    place = next(each for each in store.places(ordered.folder) if len(store.read_trials(each).records) >= 3)
    kept = (place / store.TRIALS_FILE).read_bytes()
    cluster.said("scontrol", "requeue", cluster.job(place.name))  # as Slurm does where a node fails
    assert ordered.ended() == 0, ordered.said.read_text()
    assert ordered.trials() == {"slurm-arm": TRIALS, "slurm-rome": TRIALS}
    assert (place / store.TRIALS_FILE).read_bytes().startswith(kept.rpartition(b"\n")[0]), "nothing is measured twice"


def test_a_feature_that_no_node_has_costs_the_others_nothing(cluster: slurm.Cluster, tmp_path: Path) -> None:
    ordered = Ordered(tmp_path, cluster.environment, COMMAND, "slurm:rome,riscv")
    assert ordered.ended() == 4
    assert ordered.trials() == {"slurm-rome": TRIALS}
    said = ordered.said.read_text()
    assert "slurm-riscv: sbatch: error: " in said
    assert "not finished: slurm-riscv; go on with: " in said


def test_a_job_that_is_cancelled_while_it_waits_is_told_as_that(cluster: slurm.Cluster, tmp_path: Path) -> None:
    for feature in slurm.NODES.values():  # each node has another's job
        cluster.said(
            *("sbatch", "--parsable", "--exclusive", "--chdir=/", "--output=/dev/null"),
            *(f"--constraint={feature}", "--wrap=exec sleep 300"),
        )
    ordered = Ordered(tmp_path, cluster.environment, COMMAND, "slurm:rome")
    assert soon(lambda: "-slurm-rome" in cluster.said("squeue", "-h", "-o", "%j"), 60)
    cluster.said("scancel", cluster.job("slurm-rome"))
    assert ordered.process.wait(slurm.UP_S / 2) == 3, ordered.said.read_text()
    said = ordered.said.read_text()
    assert "has not run to its end: cancelled" in said
    assert "not finished: slurm-rome; go on with: " in said
    assert "shared" not in said
