"""Answers kept on disk as they come, so that an interrupted run goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from hazards.verdict import Kind, Verdict


def key_of(files: Iterable[Path], *facts: str) -> str:
    """What an answer is good for: these sources, however they are laid out, this library, these facts."""
    digest = hashlib.sha256()
    for file in sorted(files):  # paths, so that files of one name keep their order
        content = file.read_bytes()
        laid_out = b"".join(content.split()) if file.suffix in (".c", ".cpp", ".h", ".sh") else content
        digest.update(file.name.encode() + b"\0" + laid_out + b"\0")
    for fact in facts:
        digest.update(fact.encode() + b"\0")
    return digest.hexdigest()[:16]


def read(path: Path) -> dict[tuple[str, str], tuple[str, Verdict]]:
    """(number, allocator) -> key and verdict, the last of each; a line cut short by an interruption is no answer."""
    found: dict[tuple[str, str], tuple[str, Verdict]] = {}
    if not path.exists():
        return found
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            row = json.loads(line)
            found[row["hazard"], row["allocator"]] = (row["key"], Verdict(Kind(row["kind"]), row["figure"]))
        except (ValueError, KeyError):
            continue
    return found


def append(path: Path, hazard: str, allocator: str, key: str, verdict: Verdict) -> None:
    """One line more."""
    path.parent.mkdir(parents=True, exist_ok=True)
    row = {"hazard": hazard, "allocator": allocator, "key": key, "kind": verdict.kind.value, "figure": verdict.figure}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
