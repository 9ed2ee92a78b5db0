"""Real clusters on one machine: two kinds of workers, of which either can be killed in the middle."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "TMPDIR")}
    return {**kept, "HOME": str(tmp_path / "home"), "LC_ALL": "C.UTF-8", "COLUMNS": "100"}
