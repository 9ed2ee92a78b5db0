"""What a cluster shows late is waited for, a job or its folder; and what it never shows is one line."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import others_modules
import pytest

from freestone.experiments.engines import Carried, Unreachable, command, job, slurm
from freestone.records import store
from freestone.records.schema import Order, Place

ORDER = Order(id="x", created_at="", freestone_version="", words=["compare", "--", "true"], directory="/", places=[])
PLACE = Place(name="slurm", engine="slurm")


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cluster whose jobs have ended as soon as they are asked for; ``job`` is what the folder shows of one, later."""
    tools = tmp_path / "tools"
    tools.mkdir()
    ended = "echo JobId=1 JobState=COMPLETED Reason=None ExitCode=0:0"
    scripts = {"sbatch": f"echo 1; sh {tools}/job >/dev/null 2>&1 &", "scontrol": ended, "job": "true"}
    for name, line in scripts.items():
        (tools / name).write_text(f"#!/bin/sh\n{line}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setattr(slurm, "LOOK_S", 0.05)
    return tools / "job"


def _carried_out(folder: Path, told: list[str] | None = None) -> Carried:
    tell = (lambda line: None) if told is None else told.append
    return slurm.Slurm().carry_out(ORDER, PLACE, folder, tell, threading.Event())


def _stand_in(cluster: Path, name: str, script: str) -> None:
    (cluster.parent / name).write_text(f"#!/bin/sh\n{script}\n")
    (cluster.parent / name).chmod(0o755)


def _writes(folder: Path) -> str:
    """What a job does that has measured all: each file is a new one."""
    files = [store.EXPERIMENT_FILE, store.TRIALS_FILE, store.SUMMARY_FILE]
    return "\n".join([f"mkdir -p {folder}", *[f"echo x >{folder}/.new; mv {folder}/.new {folder}/{n}" for n in files]])


def test_a_controller_that_does_not_answer_is_asked_again(
    cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "AGAIN_S", 0.05)
    folder = tmp_path / "slurm"
    cluster.write_text(_writes(folder))
    _stand_in(
        cluster,
        "scontrol",
        f"cd {tmp_path}; echo x >>asked; [ $(wc -l <asked) -gt 3 ] || "
        "{ echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1; }\n"
        "echo JobId=1 JobState=COMPLETED Reason=None ExitCode=0:0",
    )
    told: list[str] = []
    assert _carried_out(folder, told).status == 0
    assert [line for line in told if "Unable to contact" in line] == [
        "slurm_load_jobs error: Unable to contact slurm controller; it is asked again"
    ]


def test_a_job_that_goes_on_without_us_is_waited_for_and_none_is_put_beside_it(
    cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "AGAIN_S", 0.05)
    monkeypatch.setattr(slurm, "SILENT_S", 0.2)
    folder = tmp_path / "slurm"
    _stand_in(cluster, "sbatch", f"echo x >>{tmp_path}/submitted; echo 7")
    _stand_in(cluster, "scontrol", "echo 'Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(Unreachable, match="job 7 may go on, and is waited for when the order goes on"):
        _carried_out(folder)
    shown = "echo JobId=7 JobName=freestone-slurm Comment=x Reason=None"
    _stand_in(
        cluster,
        "scontrol",
        f"cd {tmp_path}; echo x >>asked; [ $(wc -l <asked) -lt 4 ] && {shown} JobState=RUNNING && exit\n"
        f"{_writes(folder)}\n{shown} JobState=COMPLETED ExitCode=0:0",
    )
    told: list[str] = []
    assert _carried_out(folder, told).status == 0
    assert told == ["is job 7, which was submitted before"]
    assert (tmp_path / "submitted").read_text() == "x\n"


@pytest.mark.parametrize("shown", ["JobName=another JobState=RUNNING", "JobName=freestone-slurm Comment=y", ""])
def test_a_job_that_is_not_ours_is_not_waited_for(
    cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: str
) -> None:
    """Numbers begin anew where a cluster is set up anew."""
    folder = tmp_path / "slurm"
    job.keep(job.Job("7", ""), folder)
    cluster.write_text(_writes(folder))
    before = f"echo JobId=7 JobState=RUNNING {shown}" if shown else "echo 'error: Invalid job id specified' >&2; exit 1"
    _stand_in(
        cluster,
        "scontrol",
        f'for word; do last=$word; done; [ "$last" = 7 ] && {{ {before}; exit; }}\n'
        "echo JobId=1 JobState=COMPLETED ExitCode=0:0",
    )
    told: list[str] = []
    assert _carried_out(folder, told).status == 0
    assert told == ["is job 1"]


def test_a_summary_of_an_earlier_job_is_not_this_one_s(
    cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "LATE_S", 0.5)
    folder = tmp_path / "slurm"
    folder.mkdir()
    for name in (store.EXPERIMENT_FILE, store.SUMMARY_FILE):
        (folder / name).write_text("x")
    with pytest.raises(Unreachable, match="shows nothing of its job"):
        _carried_out(folder)
    monkeypatch.setattr(slurm, "LATE_S", 60.0)
    cluster.write_text(f"sleep 0.5\n{_writes(folder)}")
    assert _carried_out(folder).status == 0
    assert (folder / store.TRIALS_FILE).exists()


@pytest.mark.parametrize("state", ["NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "REVOKED", "DEADLINE"])
def test_a_job_that_was_taken_away_is_submitted_again(cluster: Path, tmp_path: Path, state: str) -> None:
    folder = tmp_path / "slurm"
    _stand_in(cluster, "sbatch", f"cd {tmp_path}; echo x >>submitted; wc -l <submitted; sh {cluster} >/dev/null 2>&1 &")
    _stand_in(
        cluster,
        "scontrol",
        'for word; do last=$word; done; [ "$last" = 1 ] && '
        f"echo JobId=1 JobState={state} ExitCode=0:15 || echo JobId=2 JobState=COMPLETED ExitCode=0:0",
    )
    cluster.write_text(_writes(folder))
    told: list[str] = []
    assert _carried_out(folder, told) == Carried(0, None)
    lost = f"job 1 was lost ({state.lower()}): what it had finished is kept; it is submitted again"
    assert told == ["is job 1", lost, "is job 2"]


def test_a_place_whose_jobs_are_all_taken_away_is_one_line(cluster: Path, tmp_path: Path) -> None:
    _stand_in(cluster, "scontrol", "echo JobId=1 JobState=PREEMPTED ExitCode=0:15")
    with pytest.raises(Unreachable, match="4 jobs were lost; what they had finished is kept"):
        _carried_out(tmp_path / "slurm")


def test_a_folder_that_comes_late_is_waited_for_with_all_that_is_in_it(cluster: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shared" / "slurm"
    folder.parent.mkdir()
    files = [store.EXPERIMENT_FILE, store.TRIALS_FILE, store.SUMMARY_FILE]
    cluster.write_text(
        f"#!/bin/sh\nsleep 0.5; mkdir {folder}\n" + "".join(f"sleep 0.2; echo x >{folder}/{name}\n" for name in files)
    )
    assert _carried_out(folder).status == 0
    assert sorted(each.name for each in folder.iterdir()) == sorted(files)


def test_a_folder_that_never_comes_is_one_line(cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "LATE_S", 0.3)
    with pytest.raises(Unreachable, match="shows nothing of its job: is it shared by the nodes") as error:
        _carried_out(tmp_path / "slurm")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("state", ["CANCELLED", "TIMEOUT", "OUT_OF_MEMORY"])
def test_a_job_that_was_ended_before_it_wrote_anything_is_told_as_that(
    cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.setattr(slurm, "SHOWN_S", 0.3)
    (tmp_path / "slurm.log").write_text("slurmstepd: error: *** JOB 1 ON one CANCELLED ***\n")
    _stand_in(cluster, "scontrol", f"echo JobId=1 JobState={state} Reason=None ExitCode=0:15")
    assert _carried_out(tmp_path / "slurm") == Carried(-15, f"job 1 has not run to its end: {state.lower()}")


def test_what_a_job_that_was_ended_has_written_may_show_late(cluster: Path, tmp_path: Path) -> None:
    folder = tmp_path / "slurm"
    cluster.write_text(f"sleep 0.5\n{_writes(folder)}")
    _stand_in(cluster, "scontrol", "echo JobId=1 JobState=TIMEOUT Reason=None ExitCode=0:15")
    assert _carried_out(folder) == Carried(-15, "job 1 has not run to its end: timeout")
    assert (folder / store.EXPERIMENT_FILE).exists()


def test_a_job_takes_no_module_of_the_folder_for_the_labs(
    cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = tmp_path / "users"
    users.mkdir()
    others_modules.put_into(users)
    _stand_in(
        cluster,
        "sbatch",
        f"for word; do case $word in --wrap=*) line=${{word#--wrap=}};; esac; done\n"
        f'cd {users} && sh -c "$line" >{tmp_path}/said 2>&1; echo 1',
    )
    monkeypatch.setattr(slurm, "LATE_S", 0.3)
    words = ["compare", "-n", "1", "-a", "glibc", "--", "/bin/true"]
    order = ORDER.model_copy(update={"words": words, "directory": str(users)})
    folder = tmp_path / "slurm"
    done = slurm.Slurm().carry_out(order, PLACE, folder, lambda line: None, threading.Event())
    assert done == Carried(0, None), (tmp_path / "said").read_text()


@pytest.mark.parametrize("state", ["CANCELLED", "SPECIAL_EXIT"])
def test_a_job_that_never_ran_is_not_waited_for(cluster: Path, tmp_path: Path, state: str) -> None:
    """One that is cancelled while it waits has exit status 0, and has written nothing."""
    _stand_in(cluster, "scontrol", f"echo JobId=1 JobState={state} Reason=None ExitCode=0:0")
    began = time.monotonic()
    carried = _carried_out(tmp_path / "slurm")
    assert time.monotonic() - began < slurm.LATE_S / 2
    assert carried.status not in command.DONE
    assert carried.last == f"job 1 has not run to its end: {state.lower()}"
