#!/usr/bin/env python3
"""Checks the models of the protocol between threads (``allocator/model/*.pml``) with spin, and prints a table.

Usage: ``python3 allocator/model/check_models.py [MODEL...] [--page FILE]``, for example ``... lock gate``; all without.
``--page`` puts the table of all models at the end of a page (docs/results/models.md).

Each model is searched whole, twice: for wrong states and for ends at which somebody waits, and for cycles that some
thread goes round for ever although each that can go on does so at some time (weak fairness; CYCLES is defined then).
It must have neither. Then once more for each fault that its first comment names (``fault NAME: what is left out``),
planted by defining NAME: there spin must find an error, or the model shows nothing. The exit status is 0 when all of
that is so.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

MODELS = Path(__file__).resolve().parent
DEPTH = 100_000
TIME_LIMIT_SECONDS = 300


SIGNS = (
    ("assertion violated", "wrong state"),
    ("invalid end state", "waits for ever"),
    ("non-progress cycle", "goes round for ever"),
)
"""What spin prints -> what the table says."""
HEADER = "| model | planted fault | spin finds | states | depth |\n| --- | --- | --- | --- | --- |"
STATES = ["-O0", "-DSAFETY"]
"""There are few states: optimizing what goes through them takes longer than going."""
CYCLES = ["-O1", "-DNP", "-DNFAIR=3"]


class ModelError(Exception):
    """A model that cannot be searched: one line that says which, and what spin or the compiler says."""


@dataclass(frozen=True)
class Run:
    """One search of a model: ``error`` is empty where spin found none; ``cycles`` where it looked for those."""

    model: str
    fault: str
    cycles: bool
    error: str
    states: int
    depth: int

    def is_right(self) -> bool:
        """Whether spin found an error just where one was planted."""
        return bool(self.error) == bool(self.fault)

    def row(self) -> str:
        """A row of the table."""
        outcome = self.error or ("no cycle" if self.cycles else "no error")
        return f"| {self.model} | {self.fault or 'none'} | {outcome} | {self.states} | {self.depth} |"


def faults(model: Path) -> dict[str, str]:
    """Name -> what is left out, in the order of the model's first comment."""
    comment = model.read_text(encoding="utf-8").split("*/")[0]
    return dict(re.findall(r"^ \* fault (\w+): (.+)$", comment, re.MULTILINE))


def _call(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, text=True, capture_output=True, check=False, timeout=TIME_LIMIT_SECONDS, errors="replace"
    )
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines()
        raise ModelError(f"{' '.join(command)}: status {done.returncode}: {said[0] if said else 'nothing said'}")
    return done.stdout


def read_outcome(said: str) -> str:
    """The error in what a search printed, in a few words; empty when there is none. One that was cut off is none."""
    errors = re.search(r"errors: (\d+)", said)
    if errors is None or "max search depth too small" in said or "out of memory" in said:
        raise ModelError("the search was cut off: not everything was looked at")
    if errors[1] == "0":
        return ""
    for sign, name in SIGNS:
        if re.search(rf"^pan:1: {sign}", said, re.MULTILINE):
            return name
    raise ModelError("an error of a kind that no model can have")


def search(model: Path, fault: str = "", *, cycles: bool = False) -> Run:
    """Goes through every state of the model, with the fault planted; or through every cycle, which take more."""
    defined = [*([fault] if fault else []), *(["CYCLES"] if cycles else [])]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _call(["spin", *(f"-D{each}" for each in defined), "-a", str(model)], folder)
        _call(["gcc", "-w", *(CYCLES if cycles else STATES), "-DCOLLAPSE", "-o", "pan", "pan.c"], folder)
        said = _call(["./pan", *(["-l", "-f"] if cycles else []), f"-m{DEPTH}"], folder)
    states = re.search(r"(\d+) states, stored", said)
    depth = re.search(r"depth reached (\d+)", said)
    error = read_outcome(said)
    return Run(model.stem, fault, cycles, error, int(states[1]) if states else 0, int(depth[1]) if depth else 0)


def find(model: Path, fault: str) -> Run:
    """What the search for states finds, or, where that is nothing, the one for cycles."""
    run = search(model, fault)
    return run if run.error else search(model, fault, cycles=True)


def main(arguments: list[str] | None = None) -> int:
    """Parses, searches, prints; 1 when a model has an error, or a planted fault is not found."""
    known = {path.stem: path for path in sorted(MODELS.glob("*.pml"))}
    parser = argparse.ArgumentParser(description="Check the models of the protocol between threads with spin.")
    parser.add_argument("model", nargs="*", help=f"of {', '.join(known)}; all without")
    parser.add_argument("--page", type=Path, help="put the table at the end of this page; of all models only")
    told = parser.parse_args(arguments)
    wanted = told.model or list(known)
    strangers = [name for name in wanted if name not in known]
    if strangers:
        parser.error(f"no such model: {', '.join(strangers)}; there are {', '.join(known)}")
    if told.page and told.model:
        parser.error("a page has the table of all models")
    print(HEADER)
    rows = []
    wrong = 0
    for name in wanted:
        for fault in ("", *faults(known[name])):
            try:
                runs = (
                    [find(known[name], fault)]
                    if fault
                    else [search(known[name], cycles=each) for each in (False, True)]
                )
            except FileNotFoundError as missing:
                print(f"freestone: {missing.filename} is missing; install spin and gcc", file=sys.stderr)
                return 2
            except (ModelError, subprocess.TimeoutExpired) as error:
                print(f"freestone: {name} {fault}: {error}", file=sys.stderr)
                wrong += 1
                continue
            for run in runs:
                rows.append(run.row())
                print(run.row() + ("" if run.is_right() else " <- wrong"), flush=True)
                wrong += not run.is_right()
    if told.page and not wrong:
        text = told.page.read_text(encoding="utf-8").partition(HEADER)[0]
        told.page.write_text("\n".join([text + HEADER, *rows, ""]), encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
