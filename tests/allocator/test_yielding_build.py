"""The build that lets other threads go first is a campaign's, made rarely: that it can still be made is seen here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
OBJECT = "allocator/tests/simulator/CMakeFiles/simulated.dir/sources/text.c.o"


@pytest.mark.long
@pytest.mark.skipif(shutil.which("ninja") is None, reason="ninja is not here")
def test_the_simulator_is_made_beside_a_library_that_yields(tmp_path: Path) -> None:
    """Two files are included before every source, the scheduler's and the yielding build's: one of them here."""
    made = subprocess.run(
        ["cmake", "-S", REPOSITORY, "-B", tmp_path, "-G", "Ninja", "-DFREESTONE_YIELDS=ON", "-DFREESTONE_TESTS=ON"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    built = subprocess.run(["ninja", "-C", tmp_path, "-v", OBJECT], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout[-2000:]
    assert "simulator/yields.h" in built.stdout
    assert "yielding/yields" not in built.stdout
