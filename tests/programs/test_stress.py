"""stress-ng finds nothing wrong with memory, threads and processes under libfreestone."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("stressor", "turns"),
    [("malloc", 20000), ("fork", 300), ("vfork", 300), ("pthread", 200), ("clone", 200)],
)
def test_the_stressor_passes(stressor: str, turns: int, bench: Any, program: Callable[..., str]) -> None:
    stress = program("stress-ng")

    def work(folder: Path, served: bool) -> Any:
        amount = [f"--{stressor}", "2", f"--{stressor}-ops", str(turns), "--timeout", "240s"]
        return bench.one([stress, *amount, "--verify", "--temp-path", str(folder)], folder, served=served)

    system, served = bench.both(work, [Path(stress).resolve().name])
    faults = [re.findall(rb"(?:fail|error): .*", run.stdout + run.stderr) for run in (system, served)]
    assert faults[1] == faults[0] == []
