"""freestone count: both kinds of counts by default, as far as the tools are here."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from freestone.records import store
from freestone.trials import permissions

Tool = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = [
    pytest.mark.skipif(
        shutil.which("strace") is None or shutil.which("valgrind") is None, reason="needs strace and valgrind"
    ),
    pytest.mark.xdist_group("count"),
]  # what they share is made once


@pytest.fixture(scope="module")
def measured(forked_tool: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One round of a program that does next to nothing."""
    place = tmp_path_factory.mktemp("count")
    true = shutil.which("true") or "/bin/true"
    words = ["compare", "-a", "freestone", "-n", "1", "--no-report", "--", true]
    assert forked_tool.call(words, place, forked_tool.environment, 120).returncode == 0
    (folder,) = (place / "results").iterdir()
    return folder


@pytest.fixture
def folder(measured: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(measured, tmp_path / "one"))


@pytest.fixture
def only_with(tmp_path: Path) -> Callable[[str], dict[str, str]]:
    """``only_with("strace")``: an environment in which no other tool is found."""

    def make(name: str) -> dict[str, str]:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or name)
        return {"PATH": str(tmp_path / "bin")}

    return make


@pytest.mark.long
def test_both_are_counted_and_kept_where_nobody_chose(freestone: Tool, folder: Path) -> None:
    if not permissions().perf:
        pytest.skip("the kernel refuses a census by perf")
    done = freestone("count", folder, "--json")
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    for name in ("calls", "instructions"):
        assert [each["configuration"] for each in counts[name]["counts"]] == ["glibc", "freestone"]
        assert all(each["status"] == "ok" for each in counts[name]["counts"])
    calls, instructions = store.read_calls(folder), store.read_instructions(folder)
    assert calls is not None
    assert instructions is not None
    assert calls.model_dump(mode="json") == counts["calls"]
    assert instructions.model_dump(mode="json") == counts["instructions"]


def test_a_tool_that_is_missing_is_one_line_and_the_other_counts(
    freestone: Tool, folder: Path, only_with: Callable[[str], dict[str, str]]
) -> None:
    if not permissions().perf:
        pytest.skip("the kernel refuses a census by perf")
    environment = only_with("strace")
    done = freestone("count", folder, "--json", env=environment)
    assert done.returncode == 0, "what nobody named is counted where it can be"
    told = [line for line in done.stderr.splitlines() if "counting " not in line]
    assert told == ["freestone: instructions are counted by valgrind, which is not here; install the package valgrind"]
    counts = json.loads(done.stdout)
    assert counts["calls"]["counts"][0]["status"] == "ok"
    assert counts["instructions"] is None
    assert not (folder / store.INSTRUCTIONS_FILE).exists()
    named = freestone("count", folder, "--calls", "--instructions", env=environment)
    assert named.returncode == 4, "what was asked for by name is missing"
    alone = freestone("count", folder, "--instructions", env=environment)
    assert (alone.returncode, alone.stdout, alone.stderr.count("\n")) == (3, "", 1)


def test_without_any_tool_one_line_names_both(freestone: Tool, folder: Path, tmp_path: Path) -> None:
    done = freestone("count", folder, env={"PATH": str(tmp_path)})
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert "install the package strace; instructions are counted by valgrind" in done.stderr


def test_damage_to_either_is_told_before_anything_is_counted(freestone: Tool, folder: Path) -> None:
    if not permissions().perf:
        pytest.skip("the kernel refuses a census by perf")
    (folder / store.INSTRUCTIONS_FILE).write_text("{")
    done = freestone("count", folder)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (5, "", 1)
    assert "instructions.json is damaged" in done.stderr
    assert not (folder / store.CALLS_FILE).exists()


@pytest.mark.long
def test_what_stands_around_the_runs_stands_around_those_that_count_too(
    freestone: Tool, only_folder: Callable[[], Path], tmp_path: Path
) -> None:
    if not permissions().perf:
        pytest.skip("the kernel refuses a census by perf")
    (tmp_path / "in").write_text("some words\n")
    around = [
        *("--setup", "printf s >> log; [ ! -e broken ]", "--prepare", "printf p >> log"),
        *("--conclude", "printf c >> log", "--cleanup", "printf 'e ' >> log", "--input", "in"),
    ]
    asked = ("compare", "-a", "freestone", "-n", "1", "--no-report")
    assert freestone(*asked, *around, "--", "grep", "words").returncode == 0
    (tmp_path / "log").unlink()
    done = freestone("count", only_folder())
    assert done.returncode == 0, "grep would fail without its input: " + done.stderr
    assert (tmp_path / "log").read_text() == "s" + "pc" * 5 + "e ", "two of strace, two of cachegrind, one of memcheck"
    (tmp_path / "broken").touch()
    done = freestone("count", only_folder(), "--calls")
    assert done.returncode == 3
    assert done.stderr.splitlines()[0] == "freestone: grep: setup failed with exit status 1"
    assert (tmp_path / "log").read_text().endswith("e se ")
