"""freestone count --instructions: counted under valgrind, into a folder that was measured before."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from freestone.records import store
from freestone.records.schema import HeapCount, InstructionCount, InstructionCounts
from freestone.reports import html
from freestone.trials import permissions

Interrupt = Callable[[list[str], Path], None]
Tool = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind (package valgrind)"),
    pytest.mark.xdist_group("instructions"),
]  # what they share is made once

SUITE = """
title = "two small programs, and one that cannot be"

[[workload]]
name = "lists"
command = ["{workloads}/patterns", "--order", "lifo", "--operations", "{operations}"]
reads = "json"
values = { operations = 400000 }
quick = { operations = 4000 }
counting = ["--no-floor"]

[[workload]]
name = "nothing"
command = ["{workloads}/empty"]

[[workload]]
name = "elsewhere"
command = ["true"]
cannot = "it is somewhere else"
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("instructions")
    (place / "small.toml").write_text(SUITE)
    words = ["bench", "small.toml", "-n", "1", "-a", "glibc,freestone"]
    command = [sys.executable, "-m", "freestone", *words]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "freestone: elsewhere is left out: it is somewhere else" in done.stderr
    (made,) = (place / "results").iterdir()
    return made


@pytest.fixture
def folder(measured: Path, tmp_path: Path) -> Path:
    """A copy of what was measured, in which nobody has counted."""
    return Path(shutil.copytree(measured, tmp_path / "results"))


@pytest.fixture(autouse=True)
def census() -> None:
    if not (permissions().perf or permissions().ptrace):
        pytest.skip("this machine lets nobody see which programs run")


def test_counts_are_kept_in_the_folder_and_shown(freestone: Tool, folder: Path) -> None:
    trials = (folder / "trials.jsonl").read_bytes()
    done = freestone("count", "--instructions", folder, "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)["instructions"]
    counts = {(each["workload"], each["configuration"]): each for each in said["counts"]}
    assert set(counts) == {(name, under) for name in ("lists", "nothing") for under in ("glibc", "freestone")}
    assert all(each["status"] == "ok" for each in counts.values())
    assert counts["lists", "glibc"]["command"][-3:] == ["--operations", "4000", "--no-floor"]
    assert counts["lists", "glibc"]["instructions"] > counts["nothing", "glibc"]["instructions"]
    heaps = {each["workload"]: each for each in said["heaps"]}
    assert heaps["lists"]["allocations"] >= 2000
    assert heaps["nothing"]["allocations"] < 10
    assert (folder / "trials.jsonl").read_bytes() == trials, "nothing that was measured is touched"

    shown = freestone("report", folder)
    assert shown.returncode == 0, shown.stderr
    assert "Requests to malloc" in shown.stdout
    assert "share of the instructions" in shown.stdout
    page = html.write([folder], folder / "page.html").read_text()
    assert "Instructions and references" in page
    assert f"{counts['lists', 'glibc']['instructions']:,}" in page
    assert "Counted: <code>" in page


def test_other_counts_stay(freestone: Tool, folder: Path) -> None:
    head = store.read_experiment(folder)
    fake = InstructionCounts(
        experiment=head.id,
        valgrind="0",
        counts=[
            InstructionCount(
                workload=name, configuration="glibc", status="ok", command=["x"], instructions=7, functions=[]
            )
            for name in ("lists", "nothing")
        ],
        heaps=[HeapCount(workload="lists", status="ok", command=["x"], allocations=9)],
    )
    store.write_instructions(folder, fake)
    assert freestone("count", "--instructions", folder, "--only", "noth*").returncode == 0
    read = store.read_instructions(folder)
    assert read is not None
    counts = {(each.workload, each.configuration): each.instructions for each in read.counts}
    assert counts["lists", "glibc"] == 7
    assert (counts["nothing", "glibc"] or 0) > 7
    assert {each.workload: each.allocations for each in read.heaps}["lists"] == 9


def test_what_was_counted_before_an_interruption_is_kept(folder: Path, interrupt: Interrupt) -> None:
    interrupt([sys.executable, "-m", "freestone", "count", "--instructions", str(folder)], folder / "instructions.json")
    read = store.read_instructions(folder)
    assert read is not None
    assert [each.workload for each in read.heaps] == ["lists"]
    assert len(read.counts) < 4


def test_a_time_limit_is_a_cell_and_the_others_are_counted(freestone: Tool, folder: Path) -> None:
    done = freestone("count", "--instructions", folder, "--timeout", "0.2")
    assert done.returncode in (3, 4)
    assert "timed out" in done.stdout
    read = store.read_instructions(folder)
    assert read is not None
    assert len(read.counts) == 4


def test_a_count_that_fails_leaves_the_earlier_one(freestone: Tool, folder: Path) -> None:
    assert freestone("count", "--instructions", folder, "--only", "nothing").returncode == 0
    before = (folder / "instructions.json").read_bytes()
    done = freestone("count", "--instructions", folder, "--only", "nothing", "--timeout", "0.01")
    assert done.returncode == 3
    assert "nothing under glibc: timeout: still running after 0.01 s; the earlier count stays" in done.stderr
    assert (folder / "instructions.json").read_bytes() == before


def test_wrong_use_is_one_line(freestone: Tool, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for arguments, status, said in (
        ((folder, "--only", "xyz"), 2, "no workload matches 'xyz'; there are lists, nothing"),
        ((folder, "--timeout", "-1"), 2, "--timeout: it takes from 1 ms to 7 d, not '-1'"),
        ((folder, "--timeout", "nan"), 2, "--timeout: it takes from 1 ms to 7 d, not 'nan'"),
        ((tmp_path / "empty",), 5, "holds no experiment.json"),
    ):
        done = freestone("count", "--instructions", *arguments)
        assert done.returncode == status
        assert said in done.stderr
        assert done.stderr.count("\n") == 1


def test_damaged_counts_are_named_and_left(freestone: Tool, folder: Path) -> None:
    (folder / "instructions.json").write_text("{")
    for words in (("count", "--instructions"), ("report",)):
        done = freestone(*words, folder)
        assert done.returncode == 5
        assert "instructions.json is damaged" in done.stderr
    assert (folder / "instructions.json").read_text() == "{"


def test_without_valgrind_the_package_is_named_and_nothing_is_written(
    freestone: Tool, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    done = freestone("count", "--instructions", folder, env={"PATH": str(tmp_path / "bin")})
    assert done.returncode == 3
    assert "install the package valgrind" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (folder / "instructions.json").exists()
