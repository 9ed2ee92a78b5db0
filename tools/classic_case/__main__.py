"""The classic case end to end, by the lab itself: the diagnosis, the cure, the thresholds, libfreestone.

Usage (``make classic-case``): ``PYTHONPATH=tools .venv/bin/python -m classic_case [--rounds N] [--budget SECONDS]
[--page FILE]``

Runs ``freestone doctor``, ``compare`` and ``count`` on build/matrices. Exit status 1: the doctor does not name the
churn or keeps no cure, glibc does not do what its rule says, or libfreestone does not keep what it is held to; 2:
something could not be measured.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from classic_case import counted, page, picture
from classic_case.counted import CURED, OURS, THEN, TODAY
from classic_case.said import Diagnosis, Story, text
from freestone.doctor.observations import Observations, Point
from freestone.records import store

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = "build/matrices"
PICTURE = "classic-case.svg"
SIZES = range(124, 133)
KIB, MATRICES, CALLS = 127, 4, 4000
"""What the program does without arguments."""
MANY = (127, 64, 250)
"""As many blocks as above with more of them live at once."""
COUNTED_CALLS = 500
BEFORE, AFTER = "before", "with the cure"


class Failed(Exception):
    """What did not run, in one line."""


def freestone(*words: str) -> str:
    """What it prints.

    Raises:
        Failed: it did not succeed.
    """
    command = [str(Path(sys.executable).with_name("freestone")), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=REPOSITORY)
    if done.returncode != 0:
        raise Failed(f"freestone {words[0]}: {(done.stderr.strip().splitlines() or ['it failed'])[-1]}")
    return done.stdout


def doctor(results: Path, *options: str) -> dict[str, Any]:
    """Its answer about the program."""
    words = ("doctor", "--json", "--results", str(results), *options, "--", PROGRAM)
    found: dict[str, Any] = json.loads(freestone(*words))
    return found


def compare(results: Path, name: str, configurations: Sequence[str], commands: Sequence[str], *options: str) -> Path:
    """The folder of a comparison of the program with several arguments."""
    each = [word for command in commands for word in ("--command", f"{PROGRAM} {command}")]
    chosen = [word for configuration in configurations for word in ("-a", configuration)]
    freestone("compare", "--no-report", "--results", str(results), "--name", name, *chosen, *options, *each)
    return next(folder for folder in results.iterdir() if folder.name.endswith(f"-{name}"))


def tell(what: str) -> None:
    """A line on what is done now."""
    print(f"classic-case: {what}", file=sys.stderr)


def measure(results: Path, rounds: int, budget_s: float, drawn: Path) -> Story:
    """All that the page says; the picture is drawn.

    Raises:
        Failed, NotCounted, StoreError: it could not be measured.
    """
    tell("the diagnosis, and its cures")
    before = doctor(results, "--goal", "time", "--time-budget", f"{budget_s:g}")
    tell("the same program with the published cure")
    settings = [word for setting in CURED.split(":")[1:] for word in ("--env", setting)]
    after = doctor(results, "--observe-only", *settings)
    courses: dict[str, list[Point]] = {
        name: Observations.model_validate(said["observations"]).course
        for name, said in ((BEFORE, before), (AFTER, after))
    }
    if not all(len(course) > 2 for course in courses.values()):
        raise Failed("the program was not looked at from outside often enough")
    picture.save(courses, drawn)

    tell(f"before and after, {rounds} rounds")
    whole, many, start = f"{KIB} {MATRICES} {CALLS}", " ".join(map(str, MANY)), f"{KIB} 1 0"
    folder = compare(results, "classic", (TODAY, CURED, OURS), (whole, many, start), "--rounds", str(rounds))
    experiment, summary = store.read_experiment(folder), store.read_summary(folder)
    cells = {
        words: {
            cell.configuration: cell
            for each in experiment.workloads
            if " ".join(each.command[1:]) == words
            for cell in summary.cells
            if cell.workload == each.name
        }
        for words in (whole, many, start)
    }
    if bad := [cell for each in cells.values() for cell in each.values() if cell.status != "ok"]:
        raise Failed(f"{bad[0].workload} under {bad[0].configuration}: {bad[0].reason}")
    promises = [
        page.promise(case, cells[words], cells[start])
        for words, case in ((whole, (KIB, MATRICES, CALLS)), (many, MANY))
    ]

    tell("the thresholds, counted")
    more = (f"{{kib}} 1 {COUNTED_CALLS}", f"{{kib}} {MATRICES} {COUNTED_CALLS}")
    numbers = tuple(f"{KIB} {matrices} {COUNTED_CALLS}" for matrices in range(2, MATRICES))
    scan = ("--scan", f"kib={SIZES[0]}..{SIZES[-1]}", "--rounds", "2")
    table = compare(results, "thresholds", (TODAY, THEN, CURED, OURS), (*more, *numbers, start), *scan)
    freestone("count", "--calls", str(table))
    calls = store.read_calls(table)
    if calls is None:
        raise Failed("no system calls were counted")
    found = counted.counted(store.read_experiment(table), store.read_summary(table), calls)
    return Story(
        day=datetime.date.today().isoformat(),
        facts=experiment.machine.facts,
        rounds=summary.rounds_complete,
        program=f"{PROGRAM} {whole}",
        many=f"{PROGRAM} {many}",
        diagnosis=Diagnosis.of(before),
        after=Diagnosis.of(after),
        cells=cells[whole],
        promises=promises,
        found=found,
        calls=COUNTED_CALLS,
        apart=counted.against_the_rule(found, COUNTED_CALLS),
        picture=PICTURE,
    )


def main(words: Sequence[str]) -> int:
    """Exit status as in the module's description."""
    parser = argparse.ArgumentParser(prog="classic_case", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--budget", type=float, default=60, help="seconds in which the doctor tries cures")
    parser.add_argument(
        "--page", type=Path, help="where to write it; its picture goes into the folder images beside it"
    )
    told = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="freestone-classic-") as scratch:
        images = told.page.parent / "images" if told.page else Path(scratch)
        images.mkdir(exist_ok=True)
        results = Path(scratch) / "results"
        results.mkdir()
        try:
            story = measure(results, told.rounds, told.budget, images / PICTURE)
        except (Failed, counted.NotCounted, store.StoreError, OSError) as error:
            print(f"classic-case: {error}", file=sys.stderr)
            return 2
    said = text(story)
    if told.page:
        told.page.write_text(said, encoding="utf-8")
    else:
        print(said)
    for line in story.wrong:
        print(f"classic-case: {line}", file=sys.stderr)
    return 1 if story.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
