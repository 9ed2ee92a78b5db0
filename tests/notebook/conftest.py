"""A results folder as freestone bench leaves it, measured on the spot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def results_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two workloads under glibc and libfreestone, three rounds."""
    results = tmp_path_factory.mktemp("notebook")
    subprocess.run(
        [
            *(sys.executable, "-m", "freestone", "bench", "patterns", "--quick", "-n", "3", "-a", "glibc,freestone"),
            *("--only", "lifo-16-100", "--only", "fifo-16-100", "--results", str(results)),
        ],
        check=True,
        capture_output=True,
        timeout=300,
    )
    (folder,) = results.iterdir()
    return folder
