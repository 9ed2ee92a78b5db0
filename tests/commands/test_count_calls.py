"""freestone count --calls: system calls counted in runs of their own, into a folder that was measured before."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.records import store
from freestone.records.schema import CallCount, CallCounts
from freestone.reports import html, syscalls
from freestone.trials import permissions
from freestone.trials.calls import read_table

Interrupt = Callable[[list[str], Path], None]
Tool = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = [
    pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace"),
    pytest.mark.xdist_group("calls"),
]  # what they share is made once


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("calls")
    words = [*("bench", "faults", "--quick", "-n", "1", "-a", "glibc,freestone", "--settings", "no-mmap-no-trim")]
    words += ["--only", "loop-16M-all", "--only", "loop-1K-none", "--results", str(results)]
    done = subprocess.run([sys.executable, "-m", "freestone", *words], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (made,) = results.iterdir()
    return made


def test_calls_are_counted_by_kind_and_kept_in_the_folder(freestone: Tool, folder: Path) -> None:
    if not permissions().perf:
        pytest.skip("the kernel refuses a census by perf")
    trials = (folder / "trials.jsonl").read_bytes()
    done = freestone("count", "--calls", folder, "--json")
    assert done.returncode == 0, done.stderr
    counts = {(each["workload"], each["configuration"]): each for each in json.loads(done.stdout)["calls"]["counts"]}
    assert len(counts) == 2 * 3
    assert all(each["status"] == "ok" for each in counts.values())
    plain, tuned = (counts["loop-16M-all", name]["calls"] for name in ("glibc", "glibc+no-mmap-no-trim"))
    assert plain["munmap"] > tuned["munmap"], "blocks of 16 MiB are mappings of their own, but not without mappings"
    assert tuned["brk"] >= plain["brk"]
    assert (folder / "trials.jsonl").read_bytes() == trials, "nothing that was measured is touched"
    page = html.write([folder], folder / "page.html").read_text()
    assert "System calls" in page
    assert "munmap" in page


def test_other_workloads_counts_stay(freestone: Tool, folder: Path) -> None:
    if not permissions().perf:
        pytest.skip("the kernel refuses a census by perf")
    fake = CallCounts(
        experiment="x",
        counts=[
            CallCount(workload="loop-1K-none", configuration="glibc", status="ok", calls={"brk": 7}),
            CallCount(workload="loop-16M-all", configuration="glibc", status="ok", calls={"brk": 9}),
        ],
    )
    store.write_calls(folder, fake)
    assert freestone("count", "--calls", folder, "--only", "loop-16M-*").returncode == 0
    read = store.read_calls(folder)
    assert read is not None
    calls = {(each.workload, each.configuration): each.calls for each in read.counts}
    assert calls["loop-1K-none", "glibc"] == {"brk": 7}
    assert calls["loop-16M-all", "glibc"] != {"brk": 9}


def test_what_was_counted_before_an_interruption_is_kept(folder: Path, tmp_path: Path, interrupt: Interrupt) -> None:
    if not permissions().perf:
        pytest.skip("the kernel refuses a census by perf")
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    (copy / "calls.json").unlink(missing_ok=True)
    interrupt([sys.executable, "-m", "freestone", "count", "--calls", str(copy)], copy / "calls.json")
    read = store.read_calls(copy)
    assert read is not None
    assert 0 < len(read.counts) < 6


def test_a_count_that_fails_leaves_the_earlier_one(freestone: Tool, folder: Path, tmp_path: Path) -> None:
    if not permissions().perf:
        pytest.skip("the kernel refuses a census by perf")
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    assert freestone("count", "--calls", copy, "--only", "loop-1K-none").returncode == 0
    before = store.read_calls(copy)
    done = freestone("count", "--calls", copy, "--only", "loop-1K-none", "--timeout", "0.001")
    # One of the two may end before somebody looks at the clock, on a machine with much else to do.
    assert done.returncode in (3, 4)
    assert "timeout: " in done.stderr
    assert "the earlier count stays" in done.stderr
    after = store.read_calls(copy)
    assert before is not None
    assert after is not None
    assert [each.configuration for each in after.counts] == [each.configuration for each in before.counts]
    assert all(each.status == "ok" for each in after.counts)


def test_wrong_use_is_one_line(freestone: Tool, folder: Path, tmp_path: Path) -> None:
    for arguments, status, said in (
        ((folder, "--timeout", "0"), 2, "--timeout: it takes from 1 ms to 7 d, not '0'"),
        ((folder, "--timeout", "nan"), 2, "--timeout: it takes from 1 ms to 7 d, not 'nan'"),
        ((folder, "--only", "nothing"), 2, "no workload matches 'nothing'; there are loop-16M-all, loop-1K-none"),
        ((folder, "--only", "loop-16M-al"), 2, "no workload matches 'loop-16M-al'; did you mean loop-16M-all?"),
        ((folder, "--only", "loop-16M-*", "--only", "x"), 2, "no workload matches 'x'; there are"),
        ((tmp_path,), 5, "holds no experiment.json"),
    ):
        done = freestone("count", "--calls", *arguments)
        assert done.returncode == status
        assert said in done.stderr
        assert done.stderr.count("\n") == 1


def test_damaged_counts_are_named(freestone: Tool, folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    (copy / "calls.json").write_text("{")
    done = freestone("count", "--calls", copy)
    assert done.returncode == 5
    assert "calls.json is damaged" in done.stderr
    assert "without that file, freestone count starts anew" in done.stderr


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
