"""The answers as Markdown: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from freestone.records.schema import Allocator
from misuses.cases import Case
from misuses.judging import Stop

Answers = Mapping[tuple[Case, str], Stop]
"""(bug, name of the configuration) -> when it is stopped."""

MARKS = {Stop.AT_ONCE: "●", Stop.LATE: "◐", Stop.HARMLESS: "○", Stop.NEVER: "·", Stop.INVALID: "?"}


def text(
    cases: Sequence[Case], names: Sequence[str], allocators: Sequence[Allocator], answers: Answers, *, day: str
) -> str:
    """The page, whole."""
    versions = ", ".join(dict.fromkeys(f"{each.name} {each.version or '?'}" for each in allocators))
    marks = ", ".join(f"{mark} {stop.value}" for stop, mark in MARKS.items() if stop is not Stop.INVALID)
    return f"""# Misuse: who stops what, and when

Written by `make misuses` on {day}; do not edit. {len(cases)} programs of one bug each (`tests/misuses`), the same
under every allocator, as each comes from where users get it. Some of them again, in seconds:
`make misuses ONLY="double free" ALLOCATORS=freestone,glibc`.

A bug is stopped **at once**, in the call or the access that is wrong; **late**, while the program goes on or when it
ends; it is **harmless** where it met nothing: a read that found nothing of the neighbours' or of what was freed, a
write that nobody's data felt. Cells: all of these (at once + late + harmless). One run each, on one machine: where
addresses are random, a neighbour may be another next time.

<picture>
  <source media="(prefers-color-scheme: dark)" srcset="images/misuses-dark.png">
  <img alt="Bugs stopped at once, late, or harmless, by allocator." src="images/misuses-light.png">
</picture>

`guard=1` stands for what is found in those blocks that `guard=N` samples: 48 small and 16 large ones at a time.

{families(cases, names, answers)}
## Each

{marks}. Sizes: small 40 bytes, medium 5,000, large 600,000.

{each(cases, names, answers)}
## Versions

{versions}.
"""


def families(cases: Sequence[Case], names: Sequence[str], answers: Answers) -> str:
    """How many of each family are stopped at once, late, or harmless: a row a family, a column a configuration."""
    rows = [["family", "bugs", *names]]
    for family in dict.fromkeys(case.family for case in cases):
        inside = [case for case in cases if case.family == family]
        rows.append([family, str(len(inside)), *(_counts(inside, name, answers) for name in names)])
    rows.append(["**all**", str(len(cases)), *(f"**{_counts(cases, name, answers)}**" for name in names)])
    return _markdown(rows)


def each(cases: Sequence[Case], names: Sequence[str], answers: Answers) -> str:
    """Every bug: a row, with a mark for each configuration."""
    rows = [["bug", *names]]
    for case in cases:
        rows.append([f"{case.words[0]} {case.name}", *(MARKS[answers[case, name]] for name in names)])
    return _markdown(rows)


def _counts(cases: Sequence[Case], name: str, answers: Answers) -> str:
    seen = [answers[case, name] for case in cases]
    at_once, late, harmless = (seen.count(each) for each in (Stop.AT_ONCE, Stop.LATE, Stop.HARMLESS))
    return f"{at_once + late + harmless} ({at_once}+{late}+{harmless})"


def legend() -> str:
    """What the signs on the terminal stand for, those of runs that are invalid too."""
    return ", ".join(f"{mark} {stop.value}" for stop, mark in MARKS.items())


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "".join(f"| {' | '.join(row)} |\n" for row in lines)
