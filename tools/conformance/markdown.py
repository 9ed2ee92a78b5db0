"""Tables of Markdown, and the line that says how they came about."""

from __future__ import annotations

import datetime
import subprocess
from collections.abc import Sequence

from conformance.building import REPOSITORY
from freestone import machine

FACTS = ("cpu", "cores_online", "memory_kib", "page_size", "kernel", "thp", "overcommit", "libc", "distribution")


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a table; the first is its head."""
    head, *body = rows
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, ["---"] * len(head), *body])


def cell(text: str) -> str:
    """Return text as it may stand in a cell."""
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())


def origin() -> str:
    """Return day, commit and machine of an answer."""
    asked = ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty", "--exclude", "*"]
    commit = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    facts = machine.describe().facts
    said = ", ".join(f"{key} {facts[key]}" for key in FACTS if facts.get(key) is not None)
    return f"{datetime.date.today().isoformat()}, commit {commit}: {said}."
