"""``--count``: counted in runs of their own, into the folder of what was measured, now or later."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.commands import counting
from freestone.commands.counting import Counting
from freestone.commands.progress import Progress
from freestone.records import store
from freestone.records.schema import CallCount, CallCounts, HeapCount, InstructionCount, InstructionCounts
from freestone.reports import html, syscalls
from freestone.trials import permissions
from freestone.trials.calls import read_table

Interrupt = Callable[[list[str], Path], None]
Tool = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = [
    pytest.mark.skipif(
        shutil.which("strace") is None or shutil.which("valgrind") is None, reason="needs strace and valgrind"
    ),
    pytest.mark.xdist_group("count"),
]  # what they share is made once

SUITE = """
title = "two small programs, and one that cannot be"

[[setting]]
name = "no-mappings"
allocators = ["glibc"]
environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "-1" }

[[workload]]
name = "lists"
command = ["{workloads}/patterns", "--order", "lifo", "--operations", "{operations}"]
reads = "json"
values = { operations = 400000 }
quick = { operations = 4000 }
counting = ["--no-floor"]

[[workload]]
name = "large"
command = ["{workloads}/span-loop", "--size", "16777216", "--rounds", "20", "--touch", "all"]

[[workload]]
name = "elsewhere"
command = ["true"]
cannot = "it is somewhere else"
"""


@pytest.fixture(scope="module")
def measured(forked_tool: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One round of each workload, without counts."""
    place = tmp_path_factory.mktemp("count")
    (place / "small.toml").write_text(SUITE)
    words = ["bench", "small.toml", "-n", "1", "-a", "glibc,freestone", "--settings", "no-mappings"]
    done = forked_tool.call(words, place, forked_tool.environment, 300)
    assert done.returncode == 0, done.stderr
    (made,) = (place / "results").iterdir()
    return made


@pytest.fixture
def environment(forked_tool: Any) -> dict[str, str]:
    """The one in which it was measured: in another one nothing is resumed."""
    return dict(forked_tool.environment)


@pytest.fixture
def folder(measured: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(measured, tmp_path / "one"))


@pytest.fixture
def census() -> None:
    if not permissions().perf:
        pytest.skip("the kernel refuses a census by perf")


def counted(freestone: Tool, folder: Path, *kinds: str, **more: object) -> subprocess.CompletedProcess[str]:
    words = [word for kind in kinds for word in ("--count", kind)]
    return freestone("bench", "--resume", folder, *words, timeout=600, **more)


def arms(*workloads: str) -> set[tuple[str, str]]:
    return {(name, under) for name in workloads for under in ("glibc", "glibc+no-mappings", "freestone")}


@pytest.mark.usefixtures("census")
def test_calls_are_counted_by_kind_and_kept_in_the_folder(freestone: Tool, folder: Path) -> None:
    trials = (folder / "trials.jsonl").read_bytes()
    done = freestone("bench", "--resume", folder, "--count", "calls", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)["calls"]["counts"]
    counts = {(each["workload"], each["configuration"]): each for each in told}
    assert counts.keys() == arms("lists", "large")
    assert all(each["status"] == "ok" for each in counts.values())
    plain, tuned = (counts["large", name]["calls"] for name in ("glibc", "glibc+no-mappings"))
    assert plain["munmap"] > tuned["munmap"], "blocks of 16 MiB are mappings of their own, but not without mappings"
    assert (folder / "trials.jsonl").read_bytes() == trials, "nothing that was measured is touched"
    page = html.write([folder], folder / "page.html").read_text()
    assert "System calls" in page
    assert "munmap" in page


@pytest.mark.long
def test_instructions_are_kept_in_the_folder_and_shown(freestone: Tool, folder: Path) -> None:
    done = freestone("bench", "--resume", folder, "--count", "instructions", "--json", timeout=600)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)["instructions"]
    counts = {(each["workload"], each["configuration"]): each for each in said["counts"]}
    assert counts.keys() == arms("lists", "large")
    assert all(each["status"] == "ok" for each in counts.values())
    assert counts["lists", "glibc"]["command"][-3:] == ["--operations", "4000", "--no-floor"]
    heaps = {each["workload"]: each for each in said["heaps"]}
    assert heaps["lists"]["allocations"] >= 2000
    shown = freestone("report", folder)
    assert shown.returncode == 0, shown.stderr
    assert "Requests to malloc" in shown.stdout
    assert "share of the instructions" in shown.stdout
    page = html.write([folder], folder / "page.html").read_text()
    assert "Instructions and references" in page
    assert f"{counts['lists', 'glibc']['instructions']:,}" in page
    assert "Counted: <code>" in page


@pytest.mark.usefixtures("census")
def test_what_has_a_good_count_is_not_counted_again(freestone: Tool, folder: Path) -> None:
    fake = [
        CallCount(workload="large", configuration="glibc", status="ok", calls={"brk": 7}),
        CallCount(workload="large", configuration="freestone", status="timeout", reason="too slow"),
    ]
    store.write_calls(folder, CallCounts(experiment="x", counts=fake))
    assert counted(freestone, folder, "calls").returncode == 0
    read = store.read_calls(folder)
    assert read is not None
    calls = {(each.workload, each.configuration): each for each in read.counts}
    assert calls["large", "glibc"].calls == {"brk": 7}
    assert calls["large", "freestone"].status == "ok"
    assert calls.keys() == arms("lists", "large")


@pytest.mark.long
def test_good_counts_of_instructions_stay(freestone: Tool, folder: Path) -> None:
    head = store.read_experiment(folder)
    fake = InstructionCounts(
        experiment=head.id,
        valgrind="0",
        counts=[
            InstructionCount(
                workload=workload, configuration=name, status="ok", command=["x"], instructions=7, functions=[]
            )
            for workload, name in arms("lists", "large") - {("large", "glibc")}
        ],
        heaps=[HeapCount(workload=each, status="ok", command=["x"], allocations=9) for each in ("lists", "large")],
    )
    store.write_instructions(folder, fake)
    assert counted(freestone, folder, "instructions").returncode == 0
    read = store.read_instructions(folder)
    assert read is not None
    counts = {(each.workload, each.configuration): each.instructions for each in read.counts}
    assert (counts.pop(("large", "glibc")) or 0) > 7
    assert set(counts.values()) == {7}


@pytest.mark.usefixtures("census")
def test_what_was_counted_before_an_interruption_is_kept(folder: Path, interrupt: Interrupt) -> None:
    words = [sys.executable, "-m", "freestone", "bench", "--resume", str(folder), "--count", "calls"]
    interrupt(words, folder / "calls.json")
    read = store.read_calls(folder)
    assert read is not None
    assert 0 < len(read.counts) < 6


@pytest.mark.long
def test_a_time_limit_is_a_cell_and_the_others_are_counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "LONGEST_S", 0.01)
    found = Counting(folder, store.read_experiment(folder), ["instructions"])
    assert not found.take(Progress(sys.stderr))
    read = store.read_instructions(folder)
    assert read is not None
    assert {each.status for each in read.counts} == {"timeout"}
    assert len(read.counts) == 6
    assert "timed out" in found.text()


@pytest.mark.usefixtures("census")
@pytest.mark.parametrize(("kind", "file"), [("calls", "calls.json"), ("instructions", "instructions.json")])
def test_damaged_counts_are_told_before_anything_is_counted(
    freestone: Tool, folder: Path, kind: str, file: str
) -> None:
    (folder / file).write_text("{")
    done = counted(freestone, folder, "calls", "instructions")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (5, "", 1)
    assert f"{file} is damaged" in done.stderr
    assert "without that file, --count starts anew" in done.stderr
    assert (folder / file).read_text() == "{"
    assert not [each for each in ("calls.json", "instructions.json") if each != file and (folder / each).exists()]


@pytest.mark.usefixtures("census")
def test_a_tool_that_is_missing_is_one_line_before_anything_runs(freestone: Tool, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "strace").symlink_to(shutil.which("strace") or "strace")
    done = counted(freestone, folder, "calls", "instructions", env={"PATH": str(tmp_path / "bin")})
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert "instructions are counted by valgrind, which is not here; install the package valgrind" in done.stderr
    (tmp_path / "none").mkdir()
    done = freestone("compare", "--count", "calls", "--", "true", env={"PATH": str(tmp_path / "none")})
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert "install the package strace" in done.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.usefixtures("census")
@pytest.mark.long
def test_a_comparison_is_counted_behind_its_rounds_with_what_stands_around_them(
    freestone: Tool, only_folder: Callable[[], Path], tmp_path: Path
) -> None:
    (tmp_path / "in").write_text("some words\n")
    around = [
        *("--setup", "printf s >> log; [ ! -e broken ]", "--prepare", "printf p >> log"),
        *("--conclude", "printf c >> log", "--cleanup", "printf 'e ' >> log", "--input", "in"),
    ]
    asked = ("compare", "-a", "freestone", "-n", "1", "--no-report", "--count", "calls", "--count", "instructions")
    done = freestone(*asked, *around, "--json", "--", "grep", "words", timeout=600)
    assert done.returncode == 0, "grep would fail without its input: " + done.stderr
    counts = json.loads(done.stdout)
    for name in ("calls", "instructions"):
        assert [each["configuration"] for each in counts[name]["counts"]] == ["glibc", "freestone"]
        assert all(each["status"] == "ok" for each in counts[name]["counts"])
    log = (tmp_path / "log").read_text()
    assert log.endswith("e s" + "pc" * 5 + "e "), "two of strace, two of cachegrind, one of memcheck"
    (tmp_path / "broken").touch()
    (only_folder() / "calls.json").unlink()
    done = freestone("compare", "--resume", only_folder(), "--count", "calls")
    assert done.returncode == 4
    assert "freestone: grep: setup failed with exit status 1" in done.stderr.splitlines()
    assert (tmp_path / "log").read_text().endswith("e se ")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["compare", "--count", "cycles", "--", "true"], "--count"),
        (["compare", "--count", "calls", "--on", "ssh:nowhere", "--", "true"], "--count"),
        (["bench", "all", "--count", "calls"], "--count are for single suites"),
    ],
)
@pytest.mark.usefixtures("census")
def test_wrong_use_is_one_line(freestone: Tool, words: list[str], told: str) -> None:
    done = freestone(*words)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


@given(st.dictionaries(st.from_regex(r"[a-z][a-z0-9_]{1,12}", fullmatch=True), st.integers(1, 10**7), max_size=8))
def test_straces_table_is_read_as_written(calls: dict[str, int]) -> None:
    calls.pop("total", None)
    lines = [
        "% time     seconds  usecs/call     calls    errors syscall",
        "------ ----------- ----------- --------- --------- ---------",
    ]
    for number, (name, count) in enumerate(calls.items()):
        errors = f"{number:>9}" if number % 2 else " " * 9
        lines.append(f" {10.5:>5} {0.000123:>11f} {3:>11} {count:>9} {errors} {name}")
    lines.append(f"100.00    0.000500           1 {sum(calls.values()):>9}         1 total")
    assert read_table("\n".join(lines)) == calls


def test_a_table_says_what_failed() -> None:
    counts = CallCounts(
        experiment="x",
        counts=[
            CallCount(workload="w", configuration="glibc", status="ok", calls={"mmap": 1200, "brk": 3}),
            CallCount(workload="w", configuration="other", status="failed", reason="exit status 3"),
        ],
    )
    shown = syscalls.render(counts, width=80, colour=False)
    assert "1,200" in shown
    assert "1,203" in shown
    assert "other: exit status 3" in shown
