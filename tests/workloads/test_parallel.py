"""The parallel loop of small vectors, built twice: its line of JSON, and what it says of wrong use."""

from __future__ import annotations

import json
import subprocess

import pytest

from freestone import native

LEVELS = ("O0", "O3")


def run(level: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = native.folder("workloads") / f"parallel-{level}"
    if not program.is_file():
        pytest.skip(f"parallel-{level} is not built: it needs a C++ compiler and TBB (libtbb-dev)")
    return subprocess.run([str(program), *arguments], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("through", ["libc", "tbb"])
def test_one_line_of_json(level: str, through: str) -> None:
    done = run(level, "--through", through, "--objects", "50000", "--threads", "3")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert (said["program"], said["through"], said["threads"], said["objects"]) == ("parallel", through, 3, 50000)
    assert said["allocations"] == 50000
    assert said["allocated_bytes"] == 10000 * (24 + 48 + 104 + 200 + 352)
    assert said["floor_seconds"] > 0
    lengths, values = (3, 6, 13, 25, 44), range(7)
    assert said["checksum"] == sum(lengths[i % 5] * values[i % 7] for i in range(50000))


@pytest.mark.parametrize(("objects", "share"), [(1000, 1.0), (2000000, 0.5), (16000000, 0.125)])
def test_the_floor_is_that_of_all_objects_whatever_share_it_ran_over(objects: int, share: float) -> None:
    done = run("O3", "--objects", str(objects), "--threads", "2")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["floor_scale"] == share
    assert said["floor_seconds"] > 0


@pytest.mark.parametrize("objects", [1, 34, 35, 36, 4097])
def test_the_floor_can_be_left_out_and_the_sum_is_checked_all_the_same(objects: int) -> None:
    done = run("O3", "--objects", str(objects), "--no-floor", "--threads", "2")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["floor_seconds"] is None
    assert said["seconds"] > 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--through", "jemalloc"], "--through is libc or tbb, not 'jemalloc'"),
        (["--objects", "0"], "--objects wants a whole number from 1"),
        (["--objects", "many"], "not 'many'"),
        (["--threads"], "--threads wants a value"),
        (["--depth", "3"], "there is no option '--depth'"),
    ],
)
def test_wrong_use_is_one_line(arguments: list[str], said: str) -> None:
    done = run("O3", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
