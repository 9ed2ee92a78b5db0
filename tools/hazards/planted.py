"""Can each run fail? Each is made under an allocator with just the fault it looks for, and must not pass."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from freestone.records.schema import Allocator, Configuration
from hazards import trial
from hazards.catalogue import Hazard, Run
from hazards.verdict import Kind, Verdict

LIBRARIES = ("tests/hazards/planted_library.c",)
"""libc's own allocator with one fault, chosen by PLANTED."""


def configuration(fault: str, built: Path) -> Configuration:
    """The allocator with this fault."""
    file = str(built / f"{Path(LIBRARIES[0]).stem}.so")
    allocator = Allocator(
        name="planted", title=f"planted {fault}", file=file, build_id=None, preload=[file], origin="", reason=None
    )
    return Configuration(name="planted", allocator=allocator, environment={"PLANTED": fault})


SEEN = frozenset({Kind.FAIL, Kind.CRASH, Kind.HANG})
"""A run that nobody served has seen nothing."""


def run(hazards: Sequence[Hazard], floor: Configuration, built: Path) -> int:
    """Prints a line for each run of each hazard; 1 when one passes under its fault."""
    unseen = 0
    for each in hazards:
        if not each.runs:
            print(f"{each.number:>3} {each.name:24} no program", flush=True)
        faulty = [run for run in each.runs if run.planted]
        verdicts = trial.each_run(each, [(run, configuration(run.planted, built)) for run in faulty], floor, built)
        answers = dict(zip(faulty, verdicts, strict=True))
        for run in each.runs:
            verdict = answers.get(run)
            unseen += verdict is not None and verdict.kind not in SEEN
            print(f"{each.number:>3} {each.name:24} {said(run, verdict)}", flush=True)
    return int(unseen > 0)


def said(run: Run, verdict: Verdict | None) -> str:
    """What became of a run's fault; no verdict: it has none."""
    if verdict is None:
        return f"{run.command}: nothing planted: {run.unplanted}"
    seen = "seen" if verdict.kind in SEEN else "NOT SEEN"
    return f"{run.command}: {run.planted}: {seen}: {verdict.kind.value}: {verdict.figure}"
