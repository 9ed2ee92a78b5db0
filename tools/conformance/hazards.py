"""The hazards: one small program for each thing users of allocators were hurt by, tried under every allocator."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shlex
import shutil
import statistics
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import control_group

from conformance import building, columns, hazard_list, process, verdict
from conformance.building import BUILT, REPOSITORY
from conformance.columns import SUBJECT, Column
from conformance.hazard_list import CatalogueError, Hazard, Run
from conformance.markdown import cell, table
from conformance.process import Ended, ended
from conformance.suite import Refused, Suite
from conformance.verdict import Kind, Verdict, compare, figure_of, judge, worst
from freestone.allocators import discovery
from freestone.records.schema import Allocator, Configuration

SOURCES = REPOSITORY / "tests" / "hazards"
SERVING = SOURCES / "serving.c"
"""Linked into every program: proves that the allocator asked for serves it."""
FAULTY = "tests/hazards/planted_library.c"
"""libc's own allocator with one fault, chosen by PLANTED."""
HEADERS = ("allocator/include", "allocator/tests", "tests/hazards")
DEFINED = ("-DFREESTONE_TESTS_PRELOAD", "-DFREESTONE_TESTS_ANY_ALLOCATOR")
JUDGES = tuple(Path(file or "") for file in (__file__, building.__file__, process.__file__, verdict.__file__))
"""Another version of these may give another answer of the same programs."""
THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
CGROUP_BYTES = 192 << 20
"""The limit of the group a program that needs one may move into."""
SEEN = frozenset({Kind.FAIL, Kind.CRASH, Kind.HANG})
"""Answers that show a planted fault; a run that nobody served shows none."""
Answers = Mapping[tuple[Hazard, str], Verdict]


class Hazards(Suite[Hazard, Verdict]):
    """Every hazard under every allocator: pass, fail with its figure, crash, hang, or why it was not tried."""

    name = "hazards"
    whole = "all hazards under all allocators"
    shown = ("matrix", "figures")

    def __init__(self) -> None:
        self.built = BUILT / "hazards"
        self.floors: dict[str, Configuration] = {}
        """glibc, and other allocators beside which hazards are tried, as far as they are here."""
        self.kept: dict[tuple[str, str], tuple[str, Verdict]] = {}

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--keep", action="store_true", help="ask again only what changed since its answer")
        parser.add_argument("--planted", action="store_true", help="each run under an allocator with just its fault")

    def choose(self, told: argparse.Namespace) -> Sequence[Hazard]:
        try:
            return hazard_list.choose(hazard_list.read(SOURCES / "hazards.toml"), told.only.split())
        except CatalogueError as error:
            raise Refused(str(error)) from None

    def prepare(self, cases: Sequence[Hazard], told: argparse.Namespace, until: ExitStack) -> None:
        if told.page and told.planted:
            raise Refused("a page is written by a run without planted faults only")
        build(cases, self.built, [FAULTY] if told.planted else [])
        (glibc,) = columns.find(discovery.SYSTEM)
        others = {each.beside for each in cases if each.times} - {"glibc"}
        found = [each for each in discovery.discover() if each.available and each.name in others]
        self.floors = {"glibc": glibc.configuration} | {each.name: discovery.configuration_for(each) for each in found}
        self.kept = read(self.built / "answers.jsonl") if told.keep else {}

    def columns(self, told: argparse.Namespace) -> Sequence[Column]:
        return columns.find(told.allocators)

    def title(self, case: Hazard) -> str:
        return f"{case.number} {case.name}"

    def answer(self, case: Hazard, column: Column) -> Verdict:
        key = key_of(case, column.configuration.allocator)
        before, kept = self.kept.get((case.number, column.name), ("", Verdict(Kind.INVALID)))
        if before == key:
            return kept
        if case.beside in self.floors:
            found = answer(case, column.configuration, self.floors[case.beside], self.built)
        else:
            found = Verdict(Kind.NOT_TRIED, f"there is no {case.beside} here to ask it beside")
        append(self.built / "answers.jsonl", case, column.name, key, found)
        return found

    def told(self, answer: Verdict) -> str:
        return f"{answer.kind.value}: {answer.figure}"

    def parts(self, cases: Sequence[Hazard], columns: Sequence[Column], answers: Answers) -> dict[str, str]:
        names = [each.name for each in columns]
        versions = (f"{each.name} {each.configuration.allocator.version or '?'}" for each in columns)
        return {
            "matrix": matrix(cases, names, answers),
            "figures": figures(cases, names, answers),
            "criteria": criteria(cases, names, answers),
            "reasons": reasons(cases, names, answers),
            "versions": f"{', '.join(versions)}.",
        }

    def failed(self, answers: Answers) -> bool:
        return any(verdict.bad for (_, name), verdict in answers.items() if name == SUBJECT)

    def instead(self, cases: Sequence[Hazard], told: argparse.Namespace) -> int | None:
        if not told.planted:
            return None
        return max(planted(each, self.floors.get(each.beside, self.floors["glibc"]), self.built) for each in cases)


# --- programs -------------------------------------------------------------------------------------------------------


def headers() -> list[Path]:
    """Return every file that a program may include."""
    return sorted(path for name in HEADERS for path in (REPOSITORY / name).rglob("*.h"))


def build(hazards: Sequence[Hazard], folder: Path, libraries: Sequence[str] = ()) -> None:
    """Compile what is older than its sources; ``libraries`` come on top of those that the hazards name.

    Raises:
        BuildFailed: the compiler refused one.
    """
    own = [*DEFINED, *(f"-I{REPOSITORY / name}" for name in HEADERS)]
    serving = folder / "serving.o"
    building.make(serving, [SERVING], [*own, "-c"], headers())
    for name in dict.fromkeys([*libraries, *(name for each in hazards for name in each.libraries)]):
        output = folder / f"{Path(name).stem}.so"
        building.make(output, [REPOSITORY / name], [*own, "-shared", "-fPIC"], headers())
    for each in hazards:
        for name in each.programs:
            source = REPOSITORY / name
            if source.suffix in building.COMPILERS:
                more = [REPOSITORY / other if other.endswith(".c") else folder / other for other in each.link]
                # A path to search in costs every start some calls, which hazard 34 counts: only if it is needed.
                search = [f"-Wl,-rpath,{folder}"] if any(path.suffix == ".so" for path in more) else []
                building.make(folder / source.stem, [source, serving, *more], [*own, *search], headers())


# --- a trial --------------------------------------------------------------------------------------------------------


class Unmet(Exception):
    """The reason why the machine cannot do what a hazard needs, in one line."""


@contextmanager
def met(hazard: Hazard) -> Iterator[dict[str, str]]:
    """Provide what a hazard needs of the machine, as variables for its program, and put it back.

    Raises:
        Unmet: it cannot be had.
    """
    missing = [name for name in hazard.commands if shutil.which(name) is None]
    if missing:
        raise Unmet(f"there is no {', no '.join(missing)} here")
    if hazard.needs == "memory-cgroup":
        with ExitStack() as until:
            try:
                folder = until.enter_context(control_group.limited(CGROUP_BYTES))
            except control_group.NoGroup as error:
                raise Unmet(str(error)) from None
            yield {"HAZARD_CGROUP": str(folder)}
    elif hazard.needs:
        if not os.access(THP, os.W_OK):
            raise Unmet("the policy of huge pages cannot be set here")
        before = THP.read_text(encoding="ascii").split("[")[1].split("]")[0]
        try:
            if hazard.needs == "thp-always":
                THP.write_text("always", encoding="ascii")
            yield {"HAZARD_THP": str(THP)}
        finally:
            THP.write_text(before, encoding="ascii")
    else:
        yield {}


def answer(hazard: Hazard, configuration: Configuration, floor: Configuration, built: Path) -> Verdict:
    """Return the worst answer of all runs of a hazard under one allocator.

    Args:
        floor: the allocator that the hazard names, beside which figures are taken that are ratios to it.
        built: the folder of the programs.
    """
    name = configuration.name
    if not hazard.programs or name in hazard.but or (hazard.only and name not in hazard.only):
        return Verdict(Kind.NOT_APPLICABLE if hazard.not_applicable else Kind.NOT_TRIED, hazard.otherwise)
    verdicts = each_run(hazard, [(run, configuration) for run in hazard.runs], floor, built)
    commands = [run.command.replace("{built}/", "") for run in hazard.runs]
    return worst(list(zip(commands, verdicts, strict=True)))


def each_run(
    hazard: Hazard, runs: Sequence[tuple[Run, Configuration]], floor: Configuration, built: Path
) -> list[Verdict]:
    """Try runs of a hazard, each under its allocator, with what they need of the machine."""
    try:
        with met(hazard) as variables, ThreadPoolExecutor(max(1, len(runs)) if hazard.together else 1) as pool:
            return list(pool.map(lambda one: _run(hazard, one[0].command, one[1], floor, built, variables), runs))
    except Unmet as reason:
        return [Verdict(Kind.NOT_TRIED, str(reason))] * len(runs)


def _run(
    hazard: Hazard, run: str, under: Configuration, floor: Configuration, built: Path, variables: Mapping[str, str]
) -> Verdict:
    def once(configuration: Configuration) -> Ended:
        command, environment = spelled(run, hazard, configuration, built)
        return ended(command, {**variables, **environment}, hazard.limit_s)

    if not hazard.times:
        return judge(once(under), hazard.limit_s)
    own: list[float] = []
    theirs: list[float] = []
    for _ in range(hazard.rounds):
        for configuration, numbers in ((under, own), (floor, theirs)):
            seen = once(configuration)
            number = figure_of(seen)
            if number is None:
                found = judge(seen, hazard.limit_s)
                if found.kind is Kind.PASS:
                    found = Verdict(Kind.INVALID, "no number")
                if configuration is floor and under is not floor:
                    # The allocator that is asked showed no fault.
                    return Verdict(Kind.NOT_TRIED, f"{hazard.beside} beside it: {found.kind.value}: {found.figure}")
                return found
            numbers.append(number)
    return compare(
        statistics.median(own), statistics.median(theirs), times=hazard.times, slack=hazard.slack, beside=hazard.beside
    )


def spelled(run: str, hazard: Hazard, configuration: Configuration, built: Path) -> tuple[list[str], dict[str, str]]:
    """Return command and variables of a run: a program that was built is meant by its name alone, others are on PATH.

    ``{built}`` stands for the folder of the programs, ``{file}`` for the allocator's library.
    """
    allocator = configuration.allocator
    preload = ":".join(allocator.preload)
    environment = {
        **configuration.environment,
        "HAZARD_NAME": configuration.name,
        "HAZARD_FILE": allocator.file or "",
        "HAZARD_BUILT": str(built),
        "HAZARD_PRELOAD": preload,
        **({"LD_PRELOAD": preload} if hazard.preload else {}),
    }
    words = [word.format(built=built, file=allocator.file or "") for word in shlex.split(run)]
    while words and "=" in words[0]:
        key, value = words.pop(0).split("=", 1)
        environment[key] = value
    scripts = {Path(name).name: REPOSITORY / name for name in hazard.programs}
    if words[0] in scripts:
        words[0] = str(scripts[words[0]])
    elif (built / words[0]).exists():
        words[0] = str(built / words[0])
    return words, environment


# --- planted faults -------------------------------------------------------------------------------------------------


def faulty(fault: str, built: Path) -> Configuration:
    """Return the allocator with this fault."""
    file = str(built / f"{Path(FAULTY).stem}.so")
    allocator = Allocator(name="planted", title=f"planted {fault}", file=file, preload=[file])
    return Configuration(name="planted", allocator=allocator, environment={"PLANTED": fault})


def planted(hazard: Hazard, floor: Configuration, built: Path) -> int:
    """Print a line for each run under an allocator with just its fault; 1 if one passes."""
    runs = [run for run in hazard.runs if run.planted]
    found = each_run(hazard, [(run, faulty(run.planted, built)) for run in runs], floor, built)
    verdicts = dict(zip(runs, found, strict=True))
    for run in hazard.runs:
        verdict = verdicts.get(run)
        said = f"{run.command}: nothing planted: {run.unplanted}"
        if verdict is not None:
            seen = "seen" if verdict.kind in SEEN else "NOT SEEN"
            said = f"{run.command}: {run.planted}: {seen}: {verdict.kind.value}: {verdict.figure}"
        print(f"{hazard.number:>3} {hazard.name:24} {said}", flush=True)
    return int(any(verdict.kind not in SEEN for verdict in verdicts.values()))


# --- answers kept on disk, so that an interrupted run goes on --------------------------------------------------------


def key_of(hazard: Hazard, allocator: Allocator) -> str:
    """Return a digest of all that an answer comes from: sources, headers, judges, the hazard, the library."""
    named = (*hazard.programs, *hazard.libraries, *hazard.link, *hazard.reads)
    sources = [REPOSITORY / name for name in named if "/" in name]
    library = [Path(allocator.file)] if allocator.file else []
    digest = hashlib.sha256(repr(hazard).encode())
    for file in sorted({*sources, SERVING, *headers(), *JUDGES, *library}):
        content = file.read_bytes()
        laid_out = b"".join(content.split()) if file.suffix in (".c", ".cpp", ".h", ".sh") else content
        digest.update(file.name.encode() + b"\0" + laid_out + b"\0")
    return digest.hexdigest()[:16]


def read(path: Path) -> dict[tuple[str, str], tuple[str, Verdict]]:
    """Return (number, allocator) -> key and verdict, the last of each; a line cut short is no answer."""
    found: dict[tuple[str, str], tuple[str, Verdict]] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            row = json.loads(line)
            found[row["hazard"], row["allocator"]] = (row["key"], Verdict(Kind(row["kind"]), row["figure"]))
        except (ValueError, KeyError):
            continue
    return found


def append(path: Path, hazard: Hazard, allocator: str, key: str, verdict: Verdict) -> None:
    """Add an answer."""
    path.parent.mkdir(parents=True, exist_ok=True)
    row = {"hazard": hazard.number, "allocator": allocator, "key": key, "kind": verdict.kind, "figure": verdict.figure}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


# --- tables ---------------------------------------------------------------------------------------------------------

_SHORT = {Kind.NOT_APPLICABLE: "n/a", Kind.NOT_TRIED: "–"}


def matrix(hazards: Sequence[Hazard], names: Sequence[str], answers: Answers) -> str:
    """Return a row for each hazard, a column for each allocator, and a count of those passed."""
    rows = [["#", "hazard", *names]]
    for each in hazards:
        rows.append([each.number, each.name, *(_mark(answers.get((each, name))) for name in names)])
    scores = []
    for name in names:
        found = [answers[each, name] for each in hazards if (each, name) in answers]
        passed, bad = sum(one.kind is Kind.PASS for one in found), sum(one.bad for one in found)
        scores.append(f"{passed} of {passed + bad}")
    return table([*rows, ["", "passed, of those tried", *scores]])


def figures(hazards: Sequence[Hazard], names: Sequence[str], answers: Answers) -> str:
    """Return a row with its figure for each hazard that an allocator did not pass; nothing without any."""
    rows = [["#", "hazard", "allocator", "answer", "figure"]]
    for each in hazards:
        found = [(name, answers[each, name]) for name in names if (each, name) in answers]
        rows += [[each.number, each.name, name, one.kind.value, cell(one.figure)] for name, one in found if one.bad]
    return table(rows) if len(rows) > 1 else ""


def criteria(hazards: Sequence[Hazard], names: Sequence[str], answers: Answers) -> str:
    """Return the right behaviour beside that of libfreestone, proofs that the program can fail, and limitations."""
    rows = [["#", "hazard", "right is", f"{SUBJECT}: seen", "fails under", "made smaller, or left out", "complaints"]]
    for each in hazards:
        own = answers.get((each, SUBJECT))
        seen = f"{own.kind.value}: {own.figure}".rstrip(": ") if own else ""
        failing = [name for name in names if (each, name) in answers and answers[each, name].bad]
        failing += dict.fromkeys(f"planted: {run.planted}" for run in each.runs if run.planted)
        failing += dict.fromkeys(f"nothing planted: {run.unplanted}" for run in each.runs if run.unplanted)
        texts = (each.right, seen, ", ".join(failing), each.scaled, each.source)
        rows.append([each.number, each.name, *map(cell, texts)])
    return table(rows)


def reasons(hazards: Sequence[Hazard], names: Sequence[str], answers: Answers) -> str:
    """Return why a hazard was not tried or does not apply, allocators of one reason together."""
    rows = [["#", "hazard", "allocators", "answer", "reason"]]
    for each in hazards:
        grouped: dict[Verdict, list[str]] = {}
        for name in names:
            one = answers.get((each, name))
            if one is not None and one.kind in _SHORT:
                grouped.setdefault(one, []).append(name)
        for one, those in grouped.items():
            who = "all" if len(those) == len(names) else ", ".join(those)
            rows.append([each.number, each.name, who, one.kind.value, cell(one.figure)])
    return table(rows) if len(rows) > 1 else ""


def _mark(verdict: Verdict | None) -> str:
    if verdict is None:
        return "?"
    word = _SHORT.get(verdict.kind, verdict.kind.value)
    return f"**{word}**" if verdict.bad else word
