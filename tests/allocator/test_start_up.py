"""What every program that starts under the library pays for it: names that the dynamic linker has to look up."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

MOST = 17
"""Names looked up; each is some 800 instructions of every start."""


@pytest.mark.skipif(shutil.which("nm") is None, reason="needs nm (package binutils)")
def test_few_names_are_looked_up_and_none_in_vain(freestone_library: Path) -> None:
    """A weak name that nobody defines, such as the compiler's start files have, is searched for in every library."""
    command = ["nm", "--dynamic", "--undefined-only", str(freestone_library)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    kinds = {line.split()[1]: line.split()[0] for line in told.splitlines()}
    assert not {name for name, kind in kinds.items() if kind != "U"}
    assert 0 < len(kinds) <= MOST, sorted(kinds)
