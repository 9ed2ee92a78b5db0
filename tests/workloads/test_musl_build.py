"""The build beside the usual one, for musl (CONTRIBUTING.md). The library itself is built for it by its own tests."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.mark.long
def test_workloads_and_probes_are_built_for_musl(repository: Path, tmp_path: Path) -> None:
    for tool in ("musl-gcc", "ninja"):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool} here")
    configure = ["cmake", "-S", str(repository), "-B", str(tmp_path), "-G", "Ninja", "-DCMAKE_C_COMPILER=musl-gcc"]
    build = ["cmake", "--build", str(tmp_path), "--target", "workloads/all", "probes/all"]
    for step in (configure, build):
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert (tmp_path / "workloads" / "programs" / "patterns").is_file()
