"""The answers as Markdown: pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from misuses.cases import Case
from misuses.columns import GROUPS, HARDENED, Column
from misuses.judging import COUNTED, Stop

Answers = Mapping[tuple[Case, str], Sequence[Stop]]
"""(bug, name of the column) -> what became of it, run by run."""

MARKS = {
    Stop.REPORTED: "●",
    Stop.GUARDED: "■",
    Stop.REPORTED_LATE: "◐",
    Stop.GUARDED_LATE: "◧",
    Stop.TOLD: "◇",
    Stop.HARMLESS: "○",
    Stop.CRASHED: "×",
    Stop.NEVER: "·",
    Stop.INVALID: "?",
}


def text(cases: Sequence[Case], columns: Sequence[Column], answers: Answers, *, day: str) -> str:
    """The page, whole."""
    marks = ", ".join(f"{mark} {stop.value}" for stop, mark in MARKS.items() if stop is not Stop.INVALID)
    names = {group: [each.name for each in columns if each.group == group] for group in GROUPS}
    bugs = [case for case in cases if case.is_bug]
    runs = max(len(stops) for stops in answers.values())
    return f"""# Misuse: who stops what, and when

Written by `make misuses` on {day}; do not edit. {len(bugs)} programs of one bug each (`tests/misuses`), the same
under every allocator, as each comes from where users get it, and under the safer builds and modes that its authors
offer. Some of them again, in seconds: `make misuses ONLY="double free" ALLOCATORS=freestone,glibc`.

What counts is what the allocator did:

- **reported**: it wrote what it saw and ended the program, or ended it by a signal of its own (abort, trap);
- **guarded page**: the program faulted on a page of the allocator's that nobody may touch, be it there as a guard, for
  what was freed, or as room held ready;
- both **at once**, in the call or the access that is wrong, or **late**, while the program goes on or when it ends;
- **told or refused**: the program went on, and a line was written, or nobody ever felt the free that may not be.

What does not count is luck, good or bad:

- **harmless**: nobody felt it. Every block's owner found its bytes as it had left them, no two owners were given the
  same ones, what `calloc` gave was zero, and what was read was nobody's secret. Mostly padding or free memory was met;
- **crashed by chance**: a fault at an address where nothing lay, or where somebody else's memory did; or a list of free
  blocks became a ring. What was unmapped when it was freed is such a place too: the next mapping may fill it;
- **never**: it was felt, and the program ended as if nothing had been.

Who draws blocks or places by chance is run {runs} times for each bug; everybody else 3 times, and {runs} where those
differ. Numbers are the means of the runs; with a range, the fewest and the most in one of them.

<picture>
  <source media="(prefers-color-scheme: dark)" srcset="images/misuses-dark.png">
  <img alt="Bugs reported, met by a guarded page, told or refused, by allocator." src="images/misuses-light.png">
</picture>

{"".join(_group(group, names[group], cases, answers) for group in GROUPS if names[group])}## What makes bugs worse

In so many of three sizes a stale pointer, or who is given a freed block, meets nothing of what was there.

{reuses(cases, [each.name for each in columns], answers)}
## Each

{marks}. Sizes: small 40 bytes, medium 5,000, large 600,000. Where runs differ: how many of them ended how.

{"".join(_each(group, names[group], cases, answers) for group in GROUPS if names[group])}## Versions

{_versions(columns)}.
"""


_NOTES = {
    HARDENED: """`guard=1` samples every allocation while there is room (48 small and 16 large blocks at a time).
It is a rate for debugging: nobody runs it in production, where `guard=5000` finds the same bugs in one block of 5,000.
`tcmalloc-debug` and glibc's `malloc.check` are for debugging too.
`harden=1` gives the first 16 small blocks pages of their own, and later one in 2 ms: these programs are short, and a
long one that never rests has fewer reads stopped.

""",
}


def _group(group: str, names: Sequence[str], cases: Sequence[Case], answers: Answers) -> str:
    return f"## {group}\n\n{_NOTES.get(group, '')}{families(cases, names, answers)}\n"


def _each(group: str, names: Sequence[str], cases: Sequence[Case], answers: Answers) -> str:
    return f"### {group}\n\n{each(cases, names, answers)}\n"


def _versions(columns: Sequence[Column]) -> str:
    found = {}
    for column in columns:
        settings = " ".join(f"{key}={value}" for key, value in column.configuration.environment.items())
        version = column.configuration.allocator.version or "?"
        found[column.name] = f"{column.name} {version}" + (f" (`{settings}`)" if settings else "")
    return ", ".join(found.values())


def families(cases: Sequence[Case], names: Sequence[str], answers: Answers) -> str:
    """What became of all bugs, whoever stops the most first; then how many of each family count."""
    bugs = [case for case in cases if case.is_bug]
    stops = [stop for stop in Stop if stop is not Stop.INVALID]
    totals = [[f"of {len(bugs)} bugs", "stopped, told or refused", *(stop.value for stop in stops)]]
    for name in sorted(names, key=lambda name: -mean(bugs, name, answers, COUNTED)):
        means = [_number(mean(bugs, name, answers, [stop])) for stop in stops]
        totals.append(
            [name, f"**{_number(mean(bugs, name, answers, COUNTED))}**{_spread(bugs, name, answers)}", *means]
        )
    rows = [["family", "bugs", *names]]
    for family in dict.fromkeys(case.family for case in bugs):
        inside = [case for case in bugs if case.family == family]
        rows.append([family, str(len(inside)), *(_number(mean(inside, name, answers, COUNTED)) for name in names)])
    return f"{_markdown(totals)}\n{_markdown(rows)}"


def reuses(cases: Sequence[Case], names: Sequence[str], answers: Answers) -> str:
    """In how many sizes nothing of what was freed is met: a row a column."""
    worse = [case for case in cases if not case.is_bug]
    kinds = list(dict.fromkeys(case.family for case in worse))
    rows = [["", *kinds]]
    for name in names:
        of_kinds = ([case for case in worse if case.family == kind] for kind in kinds)
        rows.append([name, *(_number(mean(inside, name, answers, [Stop.HARMLESS])) for inside in of_kinds)])
    return _markdown(rows)


def each(cases: Sequence[Case], names: Sequence[str], answers: Answers) -> str:
    """Every bug: a row, with what became of it in each column."""
    rows = [["bug", *names]]
    for case in cases:
        rows.append([f"{case.words[0]} {case.name}", *(_cell(answers[case, name]) for name in names)])
    return _markdown(rows)


def mean(cases: Sequence[Case], name: str, answers: Answers, wanted: Sequence[Stop]) -> float:
    """How many bugs ended so, of a run on the average."""
    return sum(sum(stop in wanted for stop in answers[case, name]) / len(answers[case, name]) for case in cases)


def spread(cases: Sequence[Case], name: str, answers: Answers) -> tuple[int, int]:
    """How many count in the worst run and in the best. A cell of fewer runs, which agreed, stands for all."""
    runs = max((len(answers[case, name]) for case in cases), default=0)
    counts = [sum(answers[case, name][run % len(answers[case, name])].counts for case in cases) for run in range(runs)]
    return min(counts, default=0), max(counts, default=0)


def _spread(cases: Sequence[Case], name: str, answers: Answers) -> str:
    least, most = spread(cases, name, answers)
    return f" ({least}–{most})" if least != most else ""


def _cell(stops: Sequence[Stop]) -> str:
    counts = Counter(stops).most_common()
    return MARKS[counts[0][0]] if len(counts) == 1 else " ".join(f"{MARKS[stop]}{count}" for stop, count in counts)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def legend() -> str:
    """What the signs on the terminal stand for, those of runs that are invalid too."""
    return ", ".join(f"{mark} {stop.value}" for stop, mark in MARKS.items())


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "".join(f"| {' | '.join(row)} |\n" for row in lines)
