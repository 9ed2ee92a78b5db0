"""The cost by size as a Google Benchmark program: its line, its own JSON, and what it says of wrong use."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from freestone import native

Run = Callable[..., subprocess.CompletedProcess[str]]

DEEDS = ("malloc", "malloc_free", "calloc", "touch", "memset")


@pytest.fixture(scope="module")
def run() -> Run:
    program = native.folder("workloads") / "sizes-benchmark"
    if not program.is_file():
        pytest.skip("sizes-benchmark is not built: it needs a C++ compiler and Google Benchmark (libbenchmark-dev)")

    def start(*arguments: str, **more: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # type: ignore[call-overload]
            [str(program), *arguments], capture_output=True, text=True, timeout=120, **more
        )

    return start


def test_every_deed_has_a_figure_for_every_size(run: Run) -> None:
    done = run("--least", "16", "--most", "64K", "--milliseconds", "1")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["program"] == "sizes-benchmark"
    sizes = [str(16 << step) for step in range(13)]
    for deed in DEEDS:
        assert list(said[f"{deed}_ns"]) == sizes
        assert all(ns > 0 for ns in said[f"{deed}_ns"].values())
    assert 0 < said["floor_ns"] < 100
    assert 0 < said["seconds"] < 1e-3
    assert said["memset_ns"]["65536"] > said["memset_ns"]["16"], "writing 64 KiB takes longer than writing 16 bytes"


def test_google_benchmark_writes_its_own_json(run: Run, tmp_path: Path) -> None:
    done = run("--most", "8", "--milliseconds", "1", f"--benchmark_out={tmp_path / 'out.json'}")
    assert done.returncode == 0, done.stderr
    names = [each["name"] for each in json.loads((tmp_path / "out.json").read_text())["benchmarks"]]
    assert any(name.startswith("malloc_free/8") for name in names)


def test_some_of_it_can_be_chosen(run: Run) -> None:
    done = run("--most", "8", "--milliseconds", "1", "--benchmark_filter=^calloc/")
    said = json.loads(done.stdout.splitlines()[-1])
    assert "calloc_ns" in said
    assert "malloc_ns" not in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--most"], "--most needs a value"),
        (["--most", "much"], "--most takes bytes, as in 64K, not 'much'"),
        (["--most", "-1"], "--most takes bytes"),
        (["--most", "99999999999G"], "--most takes bytes"),
        (["--least", "1K", "--most", "8"], "--least is more than --most"),
        (["--larger", "8"], "there is no --larger; there are --least"),
        (["--most", "8", "--benchmark_filter=nothing"], "nothing was measured"),
    ],
)
def test_wrong_use_is_one_line(run: Run, arguments: list[str], said: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert said in done.stderr.splitlines()[-1]
    assert done.stdout == ""


def test_memory_that_cannot_be_locked_is_named(run: Run) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may lock as much memory as there is")
    done = run(
        "--most",
        "8",
        env={**os.environ, "FREESTONE_LOCK_MEMORY": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0)),
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "mlockall: " in done.stderr
