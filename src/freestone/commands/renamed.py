"""What verbs of earlier versions are called now."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from freestone.commands import program

_NOW: Final = {
    "score": ["report"],
    "gate": ["diff"],
    "peers": ["allocators"],
    "calls": ["count", "--calls"],
    "instructions": ["count", "--instructions"],
}
"""Verb -> what stands in its place on a command line."""

_EXAMPLE: Final = {
    "score": ["results/FOLDER"],
    "gate": ["results/BEFORE", "results/AFTER", "--max-slowdown", "3%"],
    "peers": [],
    "calls": ["results/FOLDER"],
    "instructions": ["results/FOLDER"],
}
"""What to show behind it where nothing else was typed."""


def told(words: Sequence[str]) -> str | None:
    """What to type instead of a command line with an old verb, in one line; None where the verb is none."""
    if not words or words[0] not in _NOW:
        return None
    verb, *rest = words
    typed = [word for word in rest if word not in ("--help", "-h")]
    if verb == "peers" and typed[:1] == ["list"]:
        typed = typed[1:]
    command = [program.tool_as_typed(), *_NOW[verb], *map(shlex.quote, typed or _EXAMPLE[verb])]
    return f"'{verb}' is now '{' '.join(_NOW[verb])}': {' '.join(command)}"
