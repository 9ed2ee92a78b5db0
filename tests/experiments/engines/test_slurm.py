"""Slurm's commands, as stand-ins on the path: a job is submitted, waited for, found again and cancelled."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from freestone.experiments.engines import Carried, Unreachable, command, slurm
from freestone.records import store
from freestone.records.schema import Order, Place

ORDER = Order(id="x", created_at="", freestone_version="", words=["compare", "--", "true"], directory="/", places=[])
PLACE = Place(name="slurm-rome", engine="slurm", kind="rome")
ENDED = "echo JobId=1 JobState=COMPLETED Reason=None ExitCode=0:0"


class Cluster:
    """A cluster whose jobs write a summary and have ended as soon as they are asked for."""

    def __init__(self, folder: Path) -> None:
        self.tools, self.place = folder / "tools", folder / "slurm-rome"
        self.tools.mkdir()
        self.told: list[str] = []
        self.stand_in("squeue", "true")
        self.stand_in("sbatch", f'echo "$*" >>{self.tools}/submitted; sh {self.tools}/job >/dev/null 2>&1 & echo 1')
        self.stand_in("scontrol", ENDED)
        self.stand_in("scancel", f'echo "$*" >{self.tools}/cancelled')
        self.stand_in("job", self.writes())

    def stand_in(self, name: str, script: str) -> None:
        (self.tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.tools / name).chmod(0o755)

    def writes(self) -> str:
        """What a job does that has measured all: each file is a new one, and the summary comes last."""
        names = (store.EXPERIMENT_FILE, store.TRIALS_FILE, store.SUMMARY_FILE)
        files = [f"echo x >{self.place}/.new; mv {self.place}/.new {self.place}/{name}" for name in names]
        return "\n".join([f"mkdir -p {self.place}", *files])

    def carry_out(self, stop: threading.Event | None = None) -> Carried:
        return slurm.carry_out(ORDER, PLACE, self.place, self.told.append, stop or threading.Event())


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(slurm, "LOOK_S", 0.05)
    found = Cluster(tmp_path)
    monkeypatch.setenv("PATH", f"{found.tools}:{os.environ['PATH']}")
    return found


def test_a_job_has_its_node_alone_and_is_requeued_by_slurm(cluster: Cluster) -> None:
    assert cluster.carry_out() == Carried(0, None)
    submitted = (cluster.tools / "submitted").read_text()
    for word in ("--exclusive", "--requeue", "--constraint=rome", "--chdir=/", "--job-name=freestone-x-slurm-rome"):
        assert f"{word} " in submitted
    assert f"--wrap=exec {command.lab()[0]} -P -m freestone compare --into {cluster.place} " in submitted
    assert cluster.told == ["is job 1"]


def test_an_earlier_job_is_waited_for_and_none_is_put_beside_it(cluster: Cluster) -> None:
    cluster.stand_in("squeue", f'case "$*" in *=freestone-x-slurm-rome) echo 7; sh {cluster.tools}/job;; esac')
    assert cluster.carry_out() == Carried(0, None)
    assert cluster.told == ["is job 7"]
    assert not (cluster.tools / "submitted").exists()


def test_a_controller_that_does_not_answer_is_asked_again(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = "echo 'Unable to contact slurm controller' >&2; exit 1"
    cluster.stand_in(
        "scontrol", f"cd {cluster.tools}; echo >>asked; [ $(wc -l <asked) -gt 3 ] || {{ {silent}; }}\n{ENDED}"
    )
    assert cluster.carry_out().status == 0
    assert cluster.told == ["is job 1", "job 1: Unable to contact slurm controller"]
    monkeypatch.setattr(slurm, "SILENT_S", 0.2)
    cluster.stand_in("scontrol", silent)
    with pytest.raises(Unreachable, match="Unable to contact slurm controller; job 1 may continue"):
        cluster.carry_out()


def test_results_that_show_late_are_waited_for(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.stand_in("job", f"sleep 0.5\n{cluster.writes()}")
    for _ in range(2):  # the summary of an earlier job is not that of this one
        before = slurm._written(cluster.place)
        assert cluster.carry_out().status == 0
        assert slurm._written(cluster.place) not in (None, before)
    cluster.stand_in("job", "true")
    monkeypatch.setattr(slurm, "LATE_S", 0.3)
    with pytest.raises(Unreachable, match="shows no results of its job: is it shared by the nodes"):
        cluster.carry_out()


@pytest.mark.parametrize(("state", "code", "status"), [("TIMEOUT", "0:15", -15), ("CANCELLED", "0:0", 130)])
def test_a_job_that_does_not_run_to_its_end_is_one_line(cluster: Cluster, state: str, code: str, status: int) -> None:
    cluster.stand_in("scontrol", f"echo JobId=1 JobState={state} Reason=None ExitCode={code}")
    assert cluster.carry_out() == Carried(status, f"job 1 has not run to its end: {state.lower()}")


def test_the_last_line_of_a_job_that_fails_is_its_reason(cluster: Cluster) -> None:
    cluster.stand_in("scontrol", "echo JobId=1 JobState=FAILED Reason=None ExitCode=2:0")
    cluster.place.with_name("slurm-rome.log").write_text("freestone: no such program\n\n")
    assert cluster.carry_out() == Carried(2, "freestone: no such program")


def test_a_stop_cancels_the_job(cluster: Cluster) -> None:
    stop = threading.Event()
    cluster.stand_in("scontrol", "echo JobId=1 JobState=RUNNING Reason=None ExitCode=0:0")
    threading.Timer(0.3, stop.set).start()
    assert cluster.carry_out(stop).status == 130
    assert (cluster.tools / "cancelled").read_text() == "1\n"


def test_what_slurm_refuses_or_does_not_know_is_one_line(cluster: Cluster) -> None:
    cluster.stand_in("scontrol", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    with pytest.raises(Unreachable, match="the cluster no longer knows job 1"):
        cluster.carry_out()
    cluster.stand_in("sbatch", "echo 'sbatch: error: Invalid feature specification' >&2; exit 1")
    with pytest.raises(Unreachable, match="sbatch: error: Invalid feature specification"):
        cluster.carry_out()


def test_a_machine_outside_of_the_cluster_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unreachable, match="there is no squeue here: submit from a machine of the cluster"):
        slurm.carry_out(ORDER, PLACE, tmp_path / "x", lambda line: None, threading.Event())
