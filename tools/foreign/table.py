"""The table of the foreign programs, as text of a page. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from foreign.comparison import Outcome, Verdict, time_ratio


@dataclass(frozen=True)
class Row:
    """A program and what was found; ``skipped`` says what was missing where it was not run."""

    name: str
    version: str
    what: str
    glibc: Sequence[Outcome] = ()
    freestone: Sequence[Outcome] = ()
    verdict: Verdict = field(default_factory=Verdict)
    skipped: str | None = None


def told(outcomes: Sequence[Outcome]) -> str:
    """Facts and largest process of the last trial."""
    if not outcomes:
        return "-"
    last = outcomes[-1]
    return f"{len(last.facts)} facts, {last.peak_kib / 1024:.0f} MiB"


def found(row: Row) -> str:
    if row.skipped is not None:
        return f"not run: {row.skipped}"
    if row.verdict.void is not None:
        return f"void: {row.verdict.void}"
    unsteady = f"; unsteady under glibc too: {'; '.join(row.verdict.unsteady)}" if row.verdict.unsteady else ""
    return ("; ".join((*row.verdict.differences, *row.verdict.to_look_at)) or "none") + unsteady


def markdown(rows: Sequence[Row]) -> str:
    """Rows as a table: the largest process's peak is told for information, and time, unless it is far beyond noise."""
    lines = [
        "| program | what it does | under glibc | under libfreestone | time (few runs, busy machine) | difference |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        times = time_ratio(row.glibc, row.freestone)
        ratio = f"{times:.2f} x" if times else "-"
        cells = [f"{row.name} {row.version}", row.what, told(row.glibc), told(row.freestone), ratio, found(row)]
        lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
