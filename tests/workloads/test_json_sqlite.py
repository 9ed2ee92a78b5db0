"""The default workload: the same work and the same line every time, and malloc really sees it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def program(repository: Path) -> Path:
    return repository / "workloads" / "json_sqlite.py"


def run(program: Path, *arguments: str, flags: tuple[str, ...] = (), **environment: str) -> tuple[str, str]:
    finished = subprocess.run(
        [sys.executable, *flags, str(program), *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return finished.stdout, finished.stderr


def test_every_run_prints_the_same_line(program: Path) -> None:
    first, _ = run(program, "--batches", "3", PYTHONMALLOC="malloc", PYTHONHASHSEED="1")
    second, _ = run(program, "--batches", "3", PYTHONMALLOC="malloc", PYTHONHASHSEED="2")
    assert first == second
    assert first.count("\n") == 1


def test_the_line_says_what_was_done(program: Path) -> None:
    line, _ = run(program, "--batches", "3", PYTHONMALLOC="malloc")
    told = json.loads(line)
    assert told["orders"] == 1200
    assert told["lines"] > told["orders"]


def test_the_digest_covers_the_work(program: Path) -> None:
    shorter, _ = run(program, "--batches", "2", PYTHONMALLOC="malloc")
    longer, _ = run(program, "--batches", "3", PYTHONMALLOC="malloc")
    assert json.loads(shorter)["digest"] != json.loads(longer)["digest"]


def test_silent_when_malloc_sees_every_block(program: Path) -> None:
    _, said = run(program, "--batches", "1", flags=("-s", "-S"), PYTHONMALLOC="malloc")
    assert said == ""


@pytest.mark.parametrize(
    ("flags", "setting"), [((), "pymalloc"), (("-I",), "malloc")], ids=["not asked for", "asked for and ignored"]
)
def test_says_so_when_python_hides_small_blocks(program: Path, flags: tuple[str, ...], setting: str) -> None:
    _, said = run(program, "--batches", "1", flags=flags, PYTHONMALLOC=setting)
    assert said.count("\n") == 1
    assert "PYTHONMALLOC=malloc" in said


def test_no_batches_is_refused_in_one_line(program: Path) -> None:
    refused = subprocess.run(
        [sys.executable, str(program), "--batches", "0"], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    assert "at least 1" in refused.stderr
