"""Can each program fail? Each is run under an allocator with just the fault it looks for, and must not pass."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from freestone.records.schema import Allocator, Configuration
from hazards import trial
from hazards.catalogue import Hazard

LIBRARIES = ("tests/hazards/planted_library.c",)
"""libc's own allocator with one fault, chosen by PLANTED."""


def configuration(fault: str, built: Path) -> Configuration:
    """The allocator with this fault."""
    file = str(built / f"{Path(LIBRARIES[0]).stem}.so")
    allocator = Allocator(
        name="planted", title=f"planted {fault}", file=file, build_id=None, preload=[file], origin="", reason=None
    )
    return Configuration(name="planted", allocator=allocator, environment={"PLANTED": fault})


def run(hazards: Sequence[Hazard], floor: Configuration, built: Path) -> int:
    """Prints a line for each hazard with a program; 1 when one passes under its fault."""
    unseen = 0
    for each in hazards:
        if not each.programs or not each.planted:
            print(f"{each.number:>3} {each.name:24} nothing planted", flush=True)
            continue
        verdict = trial.answer(each, configuration(each.planted, built), floor, built)
        unseen += not verdict.bad
        seen = f"{'seen' if verdict.bad else 'NOT SEEN'}: {verdict.kind.value}: {verdict.figure}"
        print(f"{each.number:>3} {each.name:24} {each.planted:10} {seen}", flush=True)
    return int(unseen > 0)
