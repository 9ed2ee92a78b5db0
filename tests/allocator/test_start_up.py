"""What every program that starts under the library pays for it: names that the dynamic linker has to look up."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("measured")  # what they measure or look for, others would disturb

MOST = 14
"""Names looked up; each is some 800 instructions of every start."""


@pytest.mark.skipif(shutil.which("nm") is None, reason="needs nm (package binutils)")
def test_few_names_are_looked_up_and_none_in_vain(freestone_library: Path) -> None:
    """A weak name that nobody defines, such as the compiler's start files have, is searched for in every library."""
    command = ["nm", "--dynamic", "--undefined-only", str(freestone_library)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    kinds = {line.split()[1]: line.split()[0] for line in told.splitlines()}
    assert not {name for name, kind in kinds.items() if kind != "U"}
    assert 0 < len(kinds) <= MOST, sorted(kinds)


def _calls_of_a_start(program: Path, place: Path, preload: Path | None) -> int:
    told = place / "calls"
    command = ["strace", "-o", str(told), *(["-E", f"LD_PRELOAD={preload}"] if preload else []), str(program)]
    environment = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "FREESTONE_OPTIONS")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"strace may not trace here: {done.stderr.strip()}")
    return sum("(" in line for line in told.read_text().splitlines())


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace (package strace)")
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_start_makes_few_system_calls(freestone_library: Path, tmp_path: Path) -> None:
    """Thirteen more than without it.

    Ten are the loader's, which finds, maps and closes it; three look at what the process was started with.
    """
    program = tmp_path / "empty"
    source = "int main(void) { return 0; }"
    subprocess.run(["cc", "-x", "c", "-o", program, "-"], input=source, check=True, text=True)
    alone = _calls_of_a_start(program, tmp_path, None)
    assert _calls_of_a_start(program, tmp_path, freestone_library) <= alone + 13
