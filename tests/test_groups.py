"""Tests of one group run in one process, whatever versions of pytest and pytest-xdist are installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = """
import os
from pathlib import Path

import pytest


@pytest.mark.parametrize("number", range(6))
@pytest.mark.xdist_group("measured")
def test_one_of_a_group(number):
    Path(f"measured-{number}").write_text(os.environ["PYTEST_XDIST_WORKER"])


@pytest.mark.parametrize("number", range(2))
def test_on_its_own(number):
    pass
"""


@pytest.mark.long
def test_a_group_is_kept_in_one_process(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    options = ["-q", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider", f"--rootdir={tmp_path}"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "test_suite.py"],
        cwd=tmp_path,
        env=clean,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "8 passed" in done.stdout, done.stdout + done.stderr
    processes = [note.read_text() for note in tmp_path.glob("measured-*")]
    assert len(processes) == 6
    assert len(set(processes)) == 1, "pytest-xdist takes no notice of groups: pytest and it do not agree"
