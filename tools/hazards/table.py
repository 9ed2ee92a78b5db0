"""The answers as Markdown: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hazards.catalogue import Hazard
from hazards.verdict import Kind, Verdict

Answers = Mapping[tuple[str, str], Verdict]
"""(number of the hazard, name of the allocator) -> verdict."""

_SHORT = {Kind.NOT_APPLICABLE: "n/a", Kind.NOT_TRIED: "–"}


def matrix(hazards: Sequence[Hazard], allocators: Sequence[str], answers: Answers) -> str:
    """A row for each hazard, a column for each allocator, and a count of what each passes."""
    rows = [["#", "hazard", *allocators]]
    for each in hazards:
        cells = [_cell(answers.get((each.number, name))) for name in allocators]
        rows.append([each.number, each.name, *cells])
    rows.append(["", "passed, of those tried", *(_score(hazards, name, answers) for name in allocators)])
    return _markdown(rows)


def figures(hazards: Sequence[Hazard], allocators: Sequence[str], answers: Answers) -> str:
    """What did not pass, with its figure: one row for each hazard and allocator."""
    rows = [["#", "hazard", "allocator", "answer", "figure"]]
    for each in hazards:
        for name in allocators:
            verdict = answers.get((each.number, name))
            if verdict is not None and verdict.bad:
                rows.append([each.number, each.name, name, verdict.kind.value, _text(verdict.figure)])
    return _markdown(rows) if len(rows) > 1 else "Nothing.\n"


def criteria(hazards: Sequence[Hazard], subject: str, allocators: Sequence[str], answers: Answers) -> str:
    """What is right before each hazard, what was seen of one allocator, what fails, what was made smaller."""
    rows = [["#", "hazard", "right is", f"{subject}: seen", "fails under", "made smaller, or left out", "complaints"]]
    for each in hazards:
        verdict = answers.get((each.number, subject))
        seen = "" if verdict is None else f"{verdict.kind.value}: {verdict.figure}".rstrip(": ")
        texts = (each.right, seen, _failing(each, allocators, answers), each.scaled, each.source)
        rows.append([each.number, each.name, *map(_text, texts)])
    return _markdown(rows)


def reasons(hazards: Sequence[Hazard], allocators: Sequence[str], answers: Answers) -> str:
    """Why something was not tried or does not apply, allocators of one reason together."""
    rows = [["#", "hazard", "allocators", "answer", "reason"]]
    for each in hazards:
        grouped: dict[Verdict, list[str]] = {}
        for name in allocators:
            verdict = answers.get((each.number, name))
            if verdict is not None and not verdict.bad and verdict.kind is not Kind.PASS:
                grouped.setdefault(verdict, []).append(name)
        for verdict, names in grouped.items():
            who = "all" if len(names) == len(allocators) else ", ".join(names)
            rows.append([each.number, each.name, who, verdict.kind.value, _text(verdict.figure)])
    return _markdown(rows) if len(rows) > 1 else "Nothing.\n"


def _failing(hazard: Hazard, allocators: Sequence[str], answers: Answers) -> str:
    """What shows that the program can fail: allocators here, and the fault that was planted for it."""
    seen = ((name, answers.get((hazard.number, name))) for name in allocators)
    failing = [name for name, verdict in seen if verdict is not None and verdict.bad]
    faults = [f"planted: {fault}" for fault in dict.fromkeys(run.planted for run in hazard.runs if run.planted)]
    bare = [f"nothing planted: {why}" for why in dict.fromkeys(run.unplanted for run in hazard.runs if run.unplanted)]
    return ", ".join([*failing, *faults, *bare])


def _cell(verdict: Verdict | None) -> str:
    if verdict is None:
        return "?"
    word = _SHORT.get(verdict.kind, verdict.kind.value)
    return f"**{word}**" if verdict.bad else word


def _score(hazards: Sequence[Hazard], name: str, answers: Answers) -> str:
    kinds = [verdict for each in hazards if (verdict := answers.get((each.number, name))) is not None]
    tried = [verdict for verdict in kinds if verdict.bad or verdict.kind is Kind.PASS]
    return f"{sum(not verdict.bad for verdict in tried)} of {len(tried)}"


def _text(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    lines += [f"| {' | '.join(row)} |" for row in body]
    return "\n".join(lines) + "\n"
