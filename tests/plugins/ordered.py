"""A comparison that is under way at several places, for tests that lose a worker in its middle."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from waiting import soon

from freestone.records import store

PROGRAM = ("sh", "-c", "sleep 0.3")
"""What is measured: long enough for something to be lost in its middle."""

ROUNDS = 5
TRIALS = 3 * ROUNDS
"""Of two allocators and a baseline that runs twice in each round."""


class Ordered:
    """A comparison that is under way at several places."""

    def __init__(self, folder: Path, environment: Mapping[str, str], command: Sequence[str], *on: str) -> None:
        self.results = folder / "results"
        self.said = folder / "said"
        places = [word for place in on for word in ("--on", place)]
        words = [*command, "compare", *places, "-n", str(ROUNDS), "-a", "glibc,freestone", "--", *PROGRAM]
        with self.said.open("w") as errors:
            self.process = subprocess.Popen(words, cwd=folder, env=dict(environment), stdout=errors, stderr=errors)

    @property
    def folder(self) -> Path:
        (found,) = self.results.iterdir()
        return found

    def ended(self) -> int:
        return self.process.wait(240)

    def trials(self) -> dict[str, int]:
        return {each.name: len(store.read_trials(each).records) for each in store.places(self.folder)}


def begun(folder: Path, at_least: int = 2) -> bool:
    """Whether an experiment in a folder, or in one below it, has so many trials within a minute."""
    return soon(lambda: any(_lines(file) >= at_least for file in folder.rglob(store.TRIALS_FILE)), 60)


def _lines(file: Path) -> int:
    return len(file.read_bytes().splitlines())
