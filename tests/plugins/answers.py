"""What the command line tool has answered as JSON."""

from __future__ import annotations

import json
import subprocess
from typing import Any


def said(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Its answer; a run that failed fails the test, with what it said of that."""
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
