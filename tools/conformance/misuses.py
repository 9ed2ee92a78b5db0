"""Programs with one bug each, under every allocator: who stops which, and when."""

from __future__ import annotations

import argparse
import itertools
import resource
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from conformance import building, columns
from conformance.building import BUILT, REPOSITORY
from conformance.columns import GROUPS, Column
from conformance.markdown import table
from conformance.process import ended
from conformance.stop import COUNTED, MARKS, Evidence, Stop, judge, read
from conformance.suite import Refused, Suite
from freestone.records.schema import Configuration

SOURCES = REPOSITORY / "tests" / "misuses"
LIST = tomllib.loads((SOURCES / "misuses.toml").read_text(encoding="utf-8"))
PROGRAMS = BUILT / "misuses"
LIMIT_S = 30.0
"""For a program that waits for ever; one that works for ever is ended by its own limit."""
RUNS = 10
AGREEING = 3
"""The number of runs that suffices if they agree and nothing is drawn by chance."""


@dataclass(frozen=True)
class Case:
    """One bug: the family it counts in, and the program with its arguments."""

    family: str
    words: tuple[str, ...]
    frees: bool = False
    """It is a free that may not be."""
    worse: bool = False
    """It makes bugs worse, and is none."""

    def __str__(self) -> str:
        return " ".join(self.words)


Answers = Mapping[tuple[Case, str], Sequence[Stop]]
"""(bug, name of the column) -> its end, run by run."""


def every() -> list[Case]:
    """Return all bugs, in the order of the list."""
    cases = []
    for family in LIST["family"]:
        more = {key: family[key] for key in ("frees", "worse") if key in family}
        for bug in family["bugs"]:
            parts = [part.strip("{}").split(",") for part in bug.split()]
            cases += [Case(family["name"], words, **more) for words in itertools.product(*parts)]
    return cases


def choose(text: str) -> list[Case]:
    """Return the bugs that have the text in ``family: program arguments``."""
    return [case for case in every() if text in f"{case.family}: {case}"]


NO_BUG = [Case("no bug", ("nobug", size)) for size in ("small", "medium", "large")]


def build() -> None:
    """Compile the programs whose sources have changed; the compiler may not see the bug."""
    for source in sorted(SOURCES.glob("*.cpp")):
        options = ["-std=c++17", "-Wno-free-nonheap-object"]
        building.make(PROGRAMS / source.stem, [source], options, [SOURCES / "misuse.h"])


def gather(case: Case, configuration: Configuration) -> Evidence:
    """Run the program once."""
    preload = {"LD_PRELOAD": ":".join(configuration.allocator.preload)}
    command = [str(PROGRAMS / case.words[0]), *case.words[1:]]
    found = ended(command, {**configuration.environment, **preload}, LIMIT_S)
    return read(found.status, found.stdout, found.stderr)


def answer(case: Case, configuration: Configuration) -> Stop:
    """Return the end of the bug in one run."""
    return judge(gather(case, configuration), frees=case.frees)


class Misuses(Suite[Case, "tuple[Stop, ...]"]):
    """Every bug under every allocator: reported, met by a guarded page, refused, harmless, crashed, or never seen."""

    name = "misuses"
    whole = "all bugs under all allocators"
    shown = ("totals", "families", "each", "legend")
    at_a_time = 4  # most of the time goes into starting and ending them

    def choose(self, told: argparse.Namespace) -> Sequence[Case]:
        chosen = choose(told.only)
        if not chosen:
            families = " | ".join(dict.fromkeys(case.family for case in every()))
            raise Refused(f"no bug has '{told.only}' in its name; families: {families}")
        return chosen

    def prepare(self, cases: Sequence[Case], told: argparse.Namespace, until: ExitStack) -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        build()

    def columns(self, told: argparse.Namespace) -> Sequence[Column]:
        found = columns.find(told.allocators, [columns.Offer(**row) for row in LIST["safer"]])
        for column in found:
            if any(answer(case, column.configuration) is not Stop.HARMLESS for case in NO_BUG):
                raise Refused(f"{column.name} does not serve a program without a bug")
        return found

    def title(self, case: Case) -> str:
        return str(case)

    def answer(self, case: Case, column: Column) -> tuple[Stop, ...]:
        stops: list[Stop] = []
        while len(stops) < RUNS:
            stops.append(answer(case, column.configuration))
            if len(stops) == AGREEING and len(set(stops)) == 1 and not column.by_chance:
                break
        return tuple(stops)

    def parts(self, cases: Sequence[Case], columns: Sequence[Column], answers: Answers) -> dict[str, str]:
        every, legend = (
            [each.name for each in columns],
            ", ".join(f"{mark} {stop.value}" for stop, mark in MARKS.items()),
        )
        parts = {"totals": totals(cases, every, answers), "families": families(cases, every, answers)}
        parts |= {"each": each(cases, every, answers), "reuses": reuses(cases, every, answers), "legend": legend}
        for group in GROUPS:
            names, key = [column.name for column in columns if column.group == group], group.split()[0].lower()
            parts[key] = f"{totals(cases, names, answers)}\n{families(cases, names, answers)}" if names else ""
            parts[f"each, {key}"] = each(cases, names, answers) if names else ""
        return parts | {"versions": f"{', '.join(map(_version, columns))}."}

    def pictures(self, cases: Sequence[Case], columns: Sequence[Column], answers: Answers) -> None:
        from conformance import misuse_picture

        misuse_picture.save(cases, columns, answers, REPOSITORY / "docs" / "images")

    def failed(self, answers: Answers) -> bool:
        return any(Stop.INVALID in stops for stops in answers.values())


# --- tables ---------------------------------------------------------------------------------------------------------


def totals(cases: Sequence[Case], names: Sequence[str], answers: Answers) -> str:
    """Return the ends of all bugs, a row for each column, the one that stops the most first."""
    bugs = [case for case in cases if not case.worse]
    stops = [stop for stop in Stop if stop is not Stop.INVALID]
    rows = [[f"of {len(bugs)} bugs", "stopped, told or refused", *(stop.value for stop in stops)]]
    for name in sorted(names, key=lambda name: -mean(bugs, name, answers, COUNTED)):
        least, most = spread(bugs, name, answers)
        between = f" ({least}–{most})" if least != most else ""
        counted = f"**{_number(mean(bugs, name, answers, COUNTED))}**{between}"
        rows.append([name, counted, *(_number(mean(bugs, name, answers, [stop])) for stop in stops)])
    return table(rows)


def families(cases: Sequence[Case], names: Sequence[str], answers: Answers) -> str:
    """Return how many bugs of each family count."""
    rows = [["family", "bugs", *names]]
    for family, inside in _by_family(cases, worse=False).items():
        rows.append([family, str(len(inside)), *(_number(mean(inside, name, answers, COUNTED)) for name in names)])
    return table(rows)


def reuses(cases: Sequence[Case], names: Sequence[str], answers: Answers) -> str:
    """Return in how many sizes a reused block shows nothing of what was freed."""
    kinds = _by_family(cases, worse=True)
    rows = [["", *kinds]]
    for name in names:
        rows.append([name, *(_number(mean(inside, name, answers, [Stop.HARMLESS])) for inside in kinds.values())])
    return table(rows)


def each(cases: Sequence[Case], names: Sequence[str], answers: Answers) -> str:
    """Return every bug with its end in each column."""
    rows = [["bug", *names]]
    for case in cases:
        found = [Counter(answers[case, name]).most_common() for name in names]
        cells = [" ".join(MARKS[stop] + (str(count) if len(one) > 1 else "") for stop, count in one) for one in found]
        rows.append([str(case), *cells])
    return table(rows)


def mean(cases: Sequence[Case], name: str, answers: Answers, wanted: Sequence[Stop]) -> float:
    """Return how many bugs ended so, in a run on the average."""
    return sum(sum(stop in wanted for stop in answers[case, name]) / len(answers[case, name]) for case in cases)


def spread(cases: Sequence[Case], name: str, answers: Answers) -> tuple[int, int]:
    """Return how many bugs count in the worst run and in the best; fewer runs, which agreed, stand for all."""
    runs = max((len(answers[case, name]) for case in cases), default=0)
    counts = [sum(answers[case, name][run % len(answers[case, name])].counts for case in cases) for run in range(runs)]
    return min(counts, default=0), max(counts, default=0)


def _by_family(cases: Sequence[Case], *, worse: bool) -> dict[str, list[Case]]:
    chosen = [case for case in cases if case.worse == worse]
    names = dict.fromkeys(case.family for case in chosen)
    return {name: [case for case in chosen if case.family == name] for name in names}


def _version(column: Column) -> str:
    settings = " ".join(f"{key}={value}" for key, value in column.configuration.environment.items())
    version = column.configuration.allocator.version or "?"
    return f"{column.name} {version}" + (f" (`{settings}`)" if settings else "")


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
