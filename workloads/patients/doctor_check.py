"""Asks the doctor about every patient, again and again, and writes what it said as a table.

    PYTHONPATH=tests/plugins python workloads/patients/doctor_check.py [OPTION...] [PATIENT...]

What each patient has stands in workloads/patients/expected.toml. All of it takes hours: answers are kept beside other
results, so that it goes on where it was interrupted, on another day too; those of another doctor or of other patients
do not count.

Exit status: 0 when it was found every time, nothing that it has not, and each cure that was tried held; 1 otherwise.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import control_group

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = REPOSITORY / "build"
ANSWERS = REPOSITORY / "docs" / "results" / "doctor-check.jsonl"
EXPECTED = REPOSITORY / "workloads" / "patients" / "expected.toml"
NEW_MEMORY = {"first-touch-faults", "huge-pages-missing"}
"""Found beside others with right: memory that is new costs each of them something, and a small machine more."""


@dataclass
class Patient:
    """What was said of one patient."""

    name: str
    has: frozenset[str]
    beside: frozenset[str] = frozenset()
    goal: str | None = None
    program: str | None = None
    limit_mib: int | None = None
    times: int = 0
    found: Counter[str] = field(default_factory=Counter)
    cured: int = 0
    tried: int = 0
    best: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    @property
    def allowed(self) -> frozenset[str]:
        """What may be found of it."""
        return self.has if "healthy" in self.has else self.has | self.beside | NEW_MEMORY

    @property
    def wrong(self) -> list[str]:
        """Symptoms that were found and that it has not."""
        return [each for each in self.found if each not in self.allowed]

    @property
    def words(self) -> list[str | Path]:
        """How it is started."""
        return [BUILD / self.program] if self.program else [BUILD / "patients", self.name]


def patients_of(text: str) -> list[Patient]:
    """All patients, as the table of what is expected lists them."""
    return [
        Patient(
            name=name,
            has=frozenset(row["has"]),
            beside=frozenset(row.get("beside", ())),
            goal=row.get("goal"),
            program=row.get("program"),
            limit_mib=row.get("limit_mib"),
        )
        for name, row in tomllib.loads(text).items()
    ]


def ask(patient: Patient, results: Path, *options: str) -> dict[str, Any]:
    """What the doctor says, as JSON.

    Raises:
        ValueError: it said nothing that is.
    """
    freestone = Path(sys.executable).with_name("freestone")
    words: list[str | Path] = [freestone, "doctor", "--json", "--results", results, *options, "--", *patient.words]
    with ExitStack() as until:
        if patient.limit_mib is not None:
            group = until.enter_context(control_group.limited(patient.limit_mib << 20))
            words = control_group.inside(group, words)
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=900, cwd=REPOSITORY)
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except json.JSONDecodeError as error:
        raise ValueError(f"{patient.name}: {done.stderr.strip().splitlines()[-1:]}") from error
    return found


Answer = dict[str, Any]
"""What was said once: ``patient``, ``cure`` (whether one was asked for), ``found``, ``best``, ``broken``, ``of``."""


def observe(patient: Patient, results: Path) -> Answer:
    """Once more, without a cure."""
    try:
        said = ask(patient, results, "--observe-only")
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return {"patient": patient.name, "cure": False, "broken": str(error)}
    return {"patient": patient.name, "cure": False, "found": sorted({each["symptom"] for each in said["findings"]})}


def cure(patient: Patient, goal: str, results: Path, budget_s: float) -> Answer:
    """Once with a cure, for the goal that its symptom has."""
    try:
        said = ask(patient, results, "--goal", goal, "--time-budget", str(budget_s))
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return {"patient": patient.name, "cure": True, "broken": str(error)}
    return {"patient": patient.name, "cure": True, "best": said["best"]}


def count(patient: Patient, answer: Answer) -> None:
    """Add an answer to what was said of a patient."""
    if answer["cure"]:
        patient.tried += 1
        if answer.get("best") is not None:
            patient.cured += 1
            patient.best[answer["best"]] += 1
    else:
        patient.times += 1
        patient.found.update(answer.get("found", ()))
    if "broken" in answer:
        patient.broken.append(answer["broken"])


ASKED = (
    "src/freestone/commands/doctor*",
    *(f"src/freestone/{room}/**/*" for room in ("doctor", "trials", "experiments", "analysis")),
    "probes/**/*",
    "workloads/patients/*",
)
"""What an answer comes from, as patterns below the repository..."""

ONLY_SAID = (
    *(f"src/freestone/commands/doctor_{name}.py" for name in ("explain", "page")),
    "src/freestone/doctor/page/*",
    *(f"src/freestone/doctor/{name}.py" for name in ("explanation", "headline", "in_code", "judgement", "over_time")),
    "src/freestone/doctor/words.py",
    *(f"src/freestone/experiments/{name}.py" for name in ("places", "machine_lock")),
    "src/freestone/experiments/engines/*",
    *(f"src/freestone/analysis/{name}.py" for name in ("across", "comparable", "machines")),
    "workloads/patients/doctor_check.py",
    "workloads/patients/expected.toml",
)
"""... but for what only puts it into words, what is expected, and what measures on other machines."""

ONLY_CURES = (
    *(f"src/freestone/commands/doctor_{name}.py" for name in ("screening", "trials")),
    *(f"src/freestone/doctor/{name}.py" for name in ("diagnosis", "remedies", "screening", "verdict")),
    *(f"src/freestone/{room}/**/*" for room in ("experiments", "analysis")),
)
"""What an answer without a cure does not come from."""


def asked_of(*, cure: bool) -> str:
    """Of which doctor, and of which patients: a digest of everything that makes an answer, with a cure or without."""
    digest = hashlib.sha256()
    others = ONLY_SAID if cure else (*ONLY_SAID, *ONLY_CURES)
    said = {file for pattern in others for file in REPOSITORY.glob(pattern)}
    for pattern in ASKED:
        for file in sorted(REPOSITORY.glob(pattern)):
            if file.suffix in (".py", ".c", ".h", ".toml") and file not in said:
                digest.update(f"{file.relative_to(REPOSITORY)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def kept(file: Path, of: Mapping[bool, str]) -> list[Answer]:
    """The answers in a file that are of the same doctor and the same patients; a line that was cut off is none.

    Args:
        of: the digest of answers with a cure, and of those without.
    """
    answers = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        try:
            answer = json.loads(line)
        except json.JSONDecodeError:
            continue
        if answer["of"] == of[answer["cure"]]:
            answers.append(answer)
    return answers


def keep(file: Path, answer: Answer) -> None:
    """Add an answer to a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab+") as out:
        cut_off = out.tell() > 0 and (out.seek(-1, 2), out.read(1))[1] != b"\n"
        out.write(b"\n" * cut_off + json.dumps(answer).encode() + b"\n")


def table(patients: Sequence[Patient]) -> str:
    """The table as Markdown."""
    lines = [
        "| patient | what it has, how often found | beside it | wrongly | cure held | the best |",
        "| --- | --- | --- | --- | ---: | --- |",
    ]
    for each in patients:
        right = ", ".join(f"{name} {each.found[name]} of {each.times}" for name in sorted(each.has))
        beside = ", ".join(f"{name} {n}" for name, n in each.found.items() if name in each.allowed - each.has)
        wrong = ", ".join(f"**{name} {each.found[name]}**" for name in each.wrong)
        cured = f"{each.cured} of {each.tried}" if each.tried else "" if each.goal else "none is known"
        if "healthy" in each.has:
            cured = ""
        best = ", ".join(f"`{name}` {count}" for name, count in each.best.most_common(2))
        lines.append(f"| {each.name} | {right} | {beside} | {wrong} | {cured} | {best} |")
    return "\n".join(lines)


def rates(patients: Sequence[Patient]) -> str:
    """One sentence: how often what is there was found, and how often what is not."""
    there = sum(len(each.has) * each.times for each in patients)
    found = sum(each.found[name] for each in patients for name in each.has)
    looks = sum(each.times for each in patients)
    wrong = sum(each.found[name] for each in patients for name in each.wrong)
    cured, tried = sum(each.cured for each in patients), sum(each.tried for each in patients)
    return (
        f"What is there was found {found} of {there} times; in {looks} looks {wrong} symptoms were named that are not "
        f"there; {cured} of {tried} cures held."
    )


def main(words: Sequence[str] | None = None) -> int:
    """Exit status as in the module's description."""
    parser = argparse.ArgumentParser(description="Asks the doctor about every patient.")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--cures", type=int, default=0, metavar="N", help="how often each is cured as well")
    parser.add_argument("--budget", type=float, default=60, help="seconds for each cure")
    parser.add_argument("--answers", type=Path, default=ANSWERS, help="where they are kept")
    parser.add_argument("--page", type=Path)
    parser.add_argument("patients", nargs="*")
    asked = parser.parse_args(words)
    patients = patients_of(EXPECTED.read_text(encoding="utf-8"))
    if unknown := set(asked.patients) - {each.name for each in patients}:
        parser.error(f"no such patient: {', '.join(sorted(unknown))}")
    if asked.patients:
        patients = [each for each in patients if each.name in asked.patients]
    of = {cured: asked_of(cure=cured) for cured in (False, True)}
    by_name = {each.name: each for each in patients}
    for answer in kept(asked.answers, of):
        if answer["patient"] in by_name:
            count(by_name[answer["patient"]], answer)
    with tempfile.TemporaryDirectory(prefix="freestone-doctor-") as results:

        def heard(patient: Patient, answer: Answer) -> None:
            keep(asked.answers, {**answer, "of": of[answer["cure"]]})
            count(patient, answer)

        for number in range(max(asked.times, asked.cures)):
            for each in patients:
                if each.times <= number < asked.times:
                    heard(each, observe(each, Path(results)))
                if each.goal is not None and each.tried <= number < asked.cures:
                    heard(each, cure(each, each.goal, Path(results), asked.budget))
            print(f"doctor-check: {number + 1} done; {rates(patients)}", file=sys.stderr)
    told = f"{rates(patients)}\n\n{table(patients)}"
    print(told)
    for line in [line for each in patients for line in each.broken]:
        print(f"doctor-check: {line}", file=sys.stderr)
    if asked.page is not None:
        least = min(each.times for each in patients)
        page = (
            "# What the doctor says of patients whose illness is known\n\n"
            f"{date.today().isoformat()}, by `make doctor-check`: each {least} times or more ([the answers]"
            "(results/doctor-check.jsonl)). [What each symptom is](explanation/symptoms.md). `case-`: written after "
            "what was reported of a real program. New memory costs every program something, more where huge pages are "
            "given on request alone: what is found of it *beside* is no mistake.\n\n" + told + "\n"
        )
        asked.page.write_text(page, encoding="utf-8")
    fine = all(
        all(each.found[name] == each.times for name in each.has)
        and not each.wrong
        and each.cured == each.tried
        and not each.broken
        for each in patients
    )
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
