"""Reproductions for a terminal and as Markdown: the table of both, and what it comes to."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from freestone.reports import grid
from freestone.reports.published.reproduction import FindingKind, Reproduction

KINDS: dict[FindingKind, str] = {
    "agrees": "Agrees",
    "differs": "Differs",
    "artefact": "An artefact of how it was measured",
    "open": "Not to be told here",
}


def render(found: Sequence[Reproduction], *, width: int, colour: bool, ascii_only: bool = False) -> str:
    """For a terminal, at most ``width`` columns wide where the sentences can be broken."""
    parts = []
    for each in found:
        parts.append(f"Published: {each.title} ({each.source})")
        parts.append(grid.text(each.table, width=width, colour=colour, ascii_only=ascii_only).rstrip())
        parts += [
            textwrap.fill(f"{KINDS[finding.kind]}: {finding.text}", max(width, 20), break_on_hyphens=False)
            for finding in each.findings
        ]
        parts.append("")
    text = "\n".join(parts)
    return text.encode("ascii", "replace").decode() if ascii_only else text


def markdown(found: Sequence[Reproduction]) -> str:
    """As Markdown, each under a heading of the second level."""
    parts = []
    for each in found:
        parts += [f"## Published: {each.title}\n", f"Source: {each.source}\n", grid.markdown(each.table, level=3)]
        parts.append("\n".join(f"- **{KINDS[finding.kind]}.** {finding.text}" for finding in each.findings) + "\n")
    return "\n".join(parts)
