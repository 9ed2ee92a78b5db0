"""Asks the doctor about every patient, again and again, and writes what it said as a table.

    python tools/doctor_check.py [--times N] [--cures] [--page FILE] [PATIENT...]

Exit status: 0 when each patient's symptom was found every time, none was found on those that are well, and each cure
that was asked for held; 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
PROGRAM = REPOSITORY / "build" / "patients"
WELL = ("healthy", "healthy-computes")
BESIDE = {"first-touch-faults", "huge-pages-missing"}
"""Found beside others with right: memory that is new costs each of them something, and a small machine more."""

MEMORY = {
    "retention-after-peak",
    "pinned-top-fragmentation",
    "slab-fragmentation",
    "arena-bloat",
}
"""Whose cure is one of memory; of all others it is one of time."""

NO_CURE = {"leak"}
NEEDS = {"mprotect-growth": {"arena-bloat"}}
"""A symptom -> patients that have it as well, by what they do."""


@dataclass
class Patient:
    """What was said of one patient."""

    name: str
    times: int = 0
    found: Counter[str] = field(default_factory=Counter)
    cured: int = 0
    tried: int = 0
    best: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> list[str]:
        """Symptoms that it has not."""
        return [
            each
            for each in self.found
            if each not in ({"healthy"} if self.name in WELL else {self.name, *BESIDE})
            and self.name not in NEEDS.get(each, set())
        ]

    @property
    def right(self) -> int:
        """How often what it has was found."""
        return self.found["healthy" if self.name in WELL else self.name]


def names() -> list[str]:
    """All patients, as the program lists them."""
    told = subprocess.run([PROGRAM], capture_output=True, text=True, check=False).stderr.splitlines()
    return [line.strip() for line in told[1:]]


def ask(patient: str, results: Path, *options: str) -> dict[str, Any]:
    """What the doctor says, as JSON.

    Raises:
        ValueError: it said nothing that is.
    """
    freestone = Path(sys.executable).with_name("freestone")
    words: list[str | Path] = [freestone, "doctor", "--json", "--results", results, *options, "--", PROGRAM, patient]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=900)
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except json.JSONDecodeError as error:
        raise ValueError(f"{patient}: {done.stderr.strip().splitlines()[-1:]}") from error
    return found


def observe(patient: Patient, results: Path) -> None:
    """Once more, without a cure."""
    patient.times += 1
    try:
        said = ask(patient.name, results, "--observe-only")
    except ValueError as error:
        patient.broken.append(str(error))
        return
    patient.found.update({each["symptom"] for each in said["findings"]})


def cure(patient: Patient, results: Path, budget_s: float) -> None:
    """Once with a cure, for the goal that its symptom has."""
    goal = "memory" if patient.name in MEMORY else "time"
    patient.tried += 1
    try:
        said = ask(patient.name, results, "--goal", goal, "--time-budget", str(budget_s))
    except ValueError as error:
        patient.broken.append(str(error))
        return
    if said["best"] is not None:
        patient.cured += 1
        patient.best[said["best"]] += 1


def table(patients: Sequence[Patient]) -> str:
    """The table as Markdown."""
    lines = [
        "| patient | found | beside it | wrongly | cure held | the best |",
        "| --- | ---: | --- | --- | ---: | --- |",
    ]
    for each in patients:
        beside = [f"{name} {count}" for name, count in each.found.items() if name in BESIDE and name != each.name]
        wrong = [f"**{name} {each.found[name]}**" for name in each.wrong]
        cured = f"{each.cured} of {each.tried}" if each.tried else "none is known" if each.name in NO_CURE else ""
        best = ", ".join(f"`{name}` {count}" for name, count in each.best.most_common(2))
        right = f"{each.right} of {each.times}"
        lines.append(f"| {each.name} | {right} | {', '.join(beside)} | {', '.join(wrong)} | {cured} | {best} |")
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> int:
    """Exit status as in the module's description."""
    parser = argparse.ArgumentParser(description="Asks the doctor about every patient.")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--cures", type=int, default=0, metavar="N", help="how often each is cured as well")
    parser.add_argument("--budget", type=float, default=20, help="seconds for each cure")
    parser.add_argument("--page", type=Path)
    parser.add_argument("patients", nargs="*")
    asked = parser.parse_args(words)
    patients = [Patient(name) for name in asked.patients or names()]
    with tempfile.TemporaryDirectory(prefix="freestone-doctor-") as results:
        for number in range(max(asked.times, asked.cures)):
            for each in patients:
                if number < asked.times:
                    observe(each, Path(results))
                if number < asked.cures and each.name not in (*WELL, *NO_CURE):
                    cure(each, Path(results), asked.budget)
            print(f"doctor-check: {number + 1} done", file=sys.stderr)
    told = table(patients)
    print(told)
    for line in [line for each in patients for line in each.broken]:
        print(f"doctor-check: {line}", file=sys.stderr)
    if asked.page is not None:
        page = (
            "# What the doctor says of patients whose illness is known\n\n"
            f"{date.today().isoformat()}, by `make doctor-check`: {asked.times} times each. [What each symptom is]"
            "(explanation/symptoms.md). New memory costs every program something, more where huge pages are given on "
            "request alone: what is found of it *beside* is no mistake.\n\n" + told + "\n"
        )
        asked.page.write_text(page, encoding="utf-8")
    fine = all(
        each.right == each.times and not each.wrong and each.cured == each.tried and not each.broken
        for each in patients
    )
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
