"""Every hazard under every allocator: pass, fail with its figure, crash, hang, or why it was not tried.

Usage: ``PYTHONPATH=tools .venv/bin/python -m hazards [--only "6 errno"] [--allocators freestone,glibc] [--page FILE]
[--keep] [--planted]``

``--page`` writes the table into a page of Markdown; only runs of all hazards under all allocators may. ``--keep`` asks
again only what changed since it was answered: the program, the library, what judges. ``--planted`` makes each run
under an allocator with just its fault, where it must not pass. Exit status 1: libfreestone does not pass all that was
tried, or a planted fault passes; 130: it was interrupted, after the answers so far.
"""

from __future__ import annotations

import argparse
import datetime
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from freestone import machine
from freestone.allocators import discovery
from freestone.allocators.errors import AllocatorError
from freestone.allocators.verification import verify
from freestone.records.schema import Allocator, Configuration
from hazards import building, catalogue, conditions, page, planted, store, table, trial
from hazards import verdict as verdict_code
from hazards.catalogue import Hazard
from hazards.verdict import Kind, Verdict

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = REPOSITORY / "tests" / "hazards"
BUILT = REPOSITORY / "build" / "hazards"
SUBJECT = "freestone"
JUDGES = tuple(Path(module.__file__ or "") for module in (building, conditions, trial, verdict_code))
"""Whose change makes another answer of the same programs."""


class Refused(Exception):
    """What is wrong with the question, in one line."""


class Interrupted(Exception):
    """Somebody did not want to wait; what was answered by then."""

    def __init__(self, answers: dict[tuple[str, str], Verdict]) -> None:
        super().__init__(f"interrupted; answers so far: {len(answers)}")
        self.answers = answers


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="hazards", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", default="", help="numbers or names, with spaces between")
    parser.add_argument("--allocators", default="", help="names or libraries, with commas between")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--planted", action="store_true")
    told = parser.parse_args(words)
    try:
        every = catalogue.read(SOURCES / "hazards.toml")
        hazards = catalogue.choose(every, told.only.split())
        if told.page and (len(hazards) != len(every) or told.allocators):
            raise Refused("a page is written by a run of all hazards under all allocators only")
        building.build(hazards, BUILT, planted.LIBRARIES if told.planted else ())
        floors = _floors(hazards)
        if told.planted:
            return max(planted.run([each], floors.get(each.beside, floors["glibc"]), BUILT) for each in hazards)
        asked = _allocators(told.allocators)
        answers, interrupted = _ask(hazards, asked, floors, keep=told.keep), None
    except Interrupted as error:
        answers, interrupted = error.answers, error
        hazards = [each for each in hazards if any(each.number == number for number, _ in answers)]
    except (Refused, catalogue.CatalogueError, building.BuildFailed, AllocatorError) as error:
        print(f"hazards: {error}", file=sys.stderr)
        return 2
    names = [each.name for each in asked]
    print(table.matrix(hazards, names, answers))
    if any(verdict.bad for verdict in answers.values()):
        print(table.figures(hazards, names, answers))
    if interrupted is not None:
        print(f"hazards: {interrupted}; KEEP=1 asks the others", file=sys.stderr)
        return 130
    if told.page:
        text = page.text(
            hazards,
            [each.allocator for each in asked],
            answers,
            subject=SUBJECT,
            command="make hazards",
            commit=_commit(),
            facts=machine.describe().facts,
            day=datetime.date.today().isoformat(),
        )
        told.page.write_text(text, encoding="utf-8")
    ours = [verdict for (_, name), verdict in answers.items() if name == SUBJECT]
    return int(any(verdict.bad for verdict in ours))


def _allocators(words: str) -> list[Configuration]:
    """Those asked for, or all that serve here, libfreestone first; each was seen serving a process.

    Raises:
        Refused: one that was asked for does not serve.
    """
    if words:
        found = discovery.find([words])
    else:
        found = [each for each in discovery.discover() if each.available]
        found.sort(key=lambda each: each.name != SUBJECT)
    configurations = []
    for each in found:
        configuration = discovery.configuration_for(each)
        seen = verify(each, settings=configuration.environment)
        if seen.verified:
            configurations.append(configuration)
        elif words:
            raise Refused(f"{each.name} does not serve here: {seen.reason}")
        else:
            print(f"hazards: {each.name} is left out: {seen.reason}", file=sys.stderr)
    return configurations


def _floors(hazards: Sequence[Hazard]) -> dict[str, Configuration]:
    """glibc, and what else hazards are asked beside, as far as it is here."""
    (glibc,) = _allocators(discovery.SYSTEM)
    wanted = {each.beside for each in hazards if each.times} - {"glibc"}
    found = [each for each in discovery.discover() if each.available and each.name in wanted]
    return {"glibc": glibc} | {each.name: discovery.configuration_for(each) for each in found}


def _ask(
    hazards: Sequence[Hazard], asked: Sequence[Configuration], floors: Mapping[str, Configuration], *, keep: bool
) -> dict[tuple[str, str], Verdict]:
    """Hazard by hazard, so that the allocators meet each one at about the same time.

    Raises:
        Interrupted: with the answers so far.
    """
    answers: dict[tuple[str, str], Verdict] = {}
    kept = store.read(BUILT / "answers.jsonl") if keep else {}
    for each in hazards:
        for configuration in asked:
            name = configuration.name
            key = _key(each, configuration.allocator)
            before = kept.get((each.number, name))
            if before is not None and before[0] == key:
                answers[each.number, name] = before[1]
                continue
            if each.beside in floors:
                print(f"{each.number} {each.name}, {name} ...", file=sys.stderr, flush=True)
                try:
                    verdict = trial.answer(each, configuration, floors[each.beside], BUILT)
                except KeyboardInterrupt:
                    raise Interrupted(answers) from None
            else:
                verdict = Verdict(Kind.NOT_TRIED, f"there is no {each.beside} here to ask it beside")
            answers[each.number, name] = verdict
            store.append(BUILT / "answers.jsonl", each.number, name, key, verdict)
            print(f"{each.number:>3} {each.name:24} {name:12} {verdict.kind.value}: {verdict.figure}", flush=True)
    return answers


def _key(hazard: Hazard, allocator: Allocator) -> str:
    """All that an answer comes from: what is compiled, what judges it, the hazard with its limits, the library."""
    named = (*hazard.programs, *hazard.libraries, *hazard.link, *hazard.reads)
    sources = [REPOSITORY / name for name in named if "/" in name]
    library = [Path(allocator.file)] if allocator.file else []
    files = [*sources, building.SERVING, *building.headers(), *JUDGES, *library]
    return store.key_of(dict.fromkeys(files), repr(hazard))


def _commit() -> str:
    asked = ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty", "--exclude", "*"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
