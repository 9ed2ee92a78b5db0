"""Programs that would fool a lab that looks less closely: each gets the right answer in every verb that tells it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from freestone.records import store
from freestone.records.schema import Summary

Tool = Callable[..., subprocess.CompletedProcess[str]]
Deceive = Callable[[str], Path]


@pytest.fixture
def deceive(compile_c: Callable[..., Path], repository: Path) -> Deceive:
    """``deceive("half_the_work")`` compiles that program, with every call of malloc left in it."""

    def build(name: str) -> Path:
        source = (repository / "tests" / "deceptions" / f"{name}.c").read_text()
        return compile_c(source, "-fno-builtin", name=name)

    return build


def _statuses(summary: Summary) -> dict[str, str]:
    return {cell.configuration: cell.status for cell in summary.cells}


def test_a_program_that_leaves_its_work_to_a_process_behind_it_has_failed(
    freestone: Tool, deceive: Deceive, only_folder: Callable[[], Path]
) -> None:
    worker = deceive("leaves_worker_behind")
    done = freestone("compare", "-a", "freestone", "-n", "2", "--", str(worker), "5000")
    assert done.returncode == 3, done.stdout
    assert _statuses(store.read_summary(only_folder())) == {"glibc": "failed", "freestone": "failed"}
    text = " ".join(done.stdout.split())
    assert f"running behind its first one ({worker}): --wait-tree" in text
    assert "--allow-survivors" in text


@pytest.mark.parametrize(("milliseconds", "option"), [(400, ["--wait-tree"]), (100, [])])
def test_work_behind_the_first_process_is_in_the_time(
    freestone: Tool, deceive: Deceive, only_folder: Callable[[], Path], milliseconds: int, option: list[str]
) -> None:
    worker = deceive("leaves_worker_behind")
    done = freestone("compare", "-a", "freestone", "-n", "2", *option, "--", str(worker), str(milliseconds))
    assert done.returncode == 0, done.stdout
    for record in store.read_trials(only_folder()).records:
        assert record.metrics is not None
        assert record.metrics.wall_s >= record.metrics.outlived_s >= 0.9 * milliseconds / 1000
    assert "the time is to the end of the last" in done.stdout


def test_survivors_that_are_allowed_are_told(
    freestone: Tool, deceive: Deceive, only_folder: Callable[[], Path]
) -> None:
    worker = deceive("leaves_worker_behind")
    done = freestone("compare", "-a", "freestone", "-n", "2", "--allow-survivors", "--json", "--", str(worker), "5000")
    assert done.returncode == 0, done.stderr
    for cell in json.loads(done.stdout)["cells"]:
        assert "the first process alone" in cell["note"]
        assert str(worker) in cell["note"]
        assert cell["median"]["wall_s"] < 5
    shown = freestone("report", str(only_folder()), "--output", "page.html", cwd=only_folder().parent.parent)
    assert shown.returncode == 0, shown.stderr
    assert "the first process alone" in (only_folder().parent.parent / "page.html").read_text()


def test_two_opposite_rules_are_refused(freestone: Tool) -> None:
    done = freestone("compare", "--wait-tree", "--allow-survivors", "--", "true")
    assert done.returncode == 2
    assert "opposite" in done.stderr
