"""Other processes, as tests wait for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path


def is_alive(process: int) -> bool:
    """Whether a process is there that has not ended."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def soon(condition: Callable[[], bool], within_s: float = 20) -> bool:
    """Whether it comes to hold within so many seconds."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.01)
    return condition()
