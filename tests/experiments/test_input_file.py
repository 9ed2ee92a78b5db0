"""The file that runs read: what is known of it, and which files cannot be one."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from freestone.experiments import input_file
from freestone.experiments.plan import PlanError
from freestone.records.schema import Input, Stages, Workload


def workload(file: Path | str, **changes: object) -> Workload:
    return Workload(name="work", command=["cat"], input=Input(file=str(file))).model_copy(update=changes)


def test_its_content_is_known_and_another_content_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "in"
    file.write_bytes(b"one")
    described = input_file.described([workload(file)])
    assert described[0].input == Input(file=str(file), bytes=3, sha256=hashlib.sha256(b"one").hexdigest())
    assert input_file.changed(described) is None
    file.write_bytes(b"two")
    assert input_file.changed(described) == f"the input {file} has other content now"


@pytest.mark.parametrize("stages", [Stages(setup="make in"), Stages(prepare="make in")])
def test_what_a_command_may_make_need_not_be_there_and_may_change(tmp_path: Path, stages: Stages) -> None:
    described = input_file.described([workload(tmp_path / "in", stages=stages)])
    assert described[0].input == Input(file=str(tmp_path / "in"))
    (tmp_path / "in").write_text("made")
    assert input_file.changed(described) is None


def test_a_device_can_be_read_again_and_again() -> None:
    assert input_file.described([workload("/dev/zero")])[0].input == Input(file="/dev/zero")


def test_what_cannot_be_read_by_every_run_is_one_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for file, said in (
        (tmp_path / "gone", "no such file or directory"),
        (tmp_path, "is a folder"),
        (tmp_path / "pipe", "no file that every run could read from its beginning"),
    ):
        with pytest.raises(PlanError) as error:
            input_file.described([workload(file)])
        assert said in str(error.value)
        assert str(file) in str(error.value)
        assert "\n" not in str(error.value)
