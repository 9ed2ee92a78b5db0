"""Which variables an allocator reads, by the names that stand in its files; and settings that it does not read.

An allocator says nothing of a variable that it does not know: a setting whose name has a slip changes nothing, and
looks like one that makes no difference.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from freestone.allocators import elf
from freestone.records.schema import Allocator, Configuration

_NAME: Final = re.compile(rb"(?<![\w.])[A-Z_][A-Z0-9_]{4,62}(?=\0)")
_OPTION: Final = re.compile(rb"(?<![\w.])[a-z]+(?:_[a-z0-9]+)+(?=\0)")
_OF_ALLOCATORS: Final = re.compile(
    r"(?!PYTHON)[A-Z_]*MALLOC(?:_.*|STATS)?|FREESTONE_.*|HEAP_?(?:PROFILE|CHECK).*|TBB_.*|SCUDO_.*", re.DOTALL
)
"""Names of variables that some allocator reads. Others are for the program, the loader or a runtime, and not judged."""

_MIMALLOC: Final = "MIMALLOC_"
"""Its file holds ``show_errors``, and it reads ``MIMALLOC_SHOW_ERRORS``."""

_NUMBERS: Final = re.compile(
    r"MALLOC_(?:ARENA_(?:MAX|TEST)|CHECK_|MMAP_(?:MAX|THRESHOLD)_|PERTURB_|TOP_PAD_|TRIM_THRESHOLD_)"
)
_NUMBER: Final = re.compile(r"\s*[-+]?(?:0[xX][0-9a-fA-F]+|[0-9]+)")
"""glibc's variables that take one, and what its loader takes for one (strtoul, any base)."""

_OF_THE_LOADER: Final = "GLIBC_TUNABLES"
_ALIKE: Final = 0.8
_VERY_ALIKE: Final = 0.85
"""A name that no allocator's begin gives away has to be nearly right to be taken for a slip."""


def unread(configurations: Iterable[Configuration]) -> list[str]:
    """A line for each setting that its allocator does not read, with the nearest name that it does, each once."""
    lines: dict[str, None] = {}
    for configuration in configurations:
        if configuration.environment:
            known = names(configuration.allocator)
            for variable, value in configuration.environment.items():
                line = complaint(configuration.allocator.name, variable, value, known)
                if line is not None:
                    lines.setdefault(line)
    return list(lines)


def complaint(allocator: str, variable: str, value: str, known: frozenset[str]) -> str | None:
    """What to say of one setting; None where it is read, or may be for somebody else than an allocator.

    Args:
        allocator: its name.
        variable: to be set.
        value: to what.
        known: the names that it reads; none where its files cannot be read, and then nothing is said.
    """
    if variable in known and _NUMBERS.fullmatch(variable) and not _NUMBER.fullmatch(value):
        return f"{allocator}:{variable}={value}: this {allocator} takes a number there, and passes over what is none"
    if not known or variable in known or variable == _OF_THE_LOADER:
        return None
    meant = _OF_ALLOCATORS.fullmatch(variable) is not None
    near = difflib.get_close_matches(variable, sorted(known), 1, _ALIKE if meant else _VERY_ALIKE)
    if not near and not meant:
        return None
    hint = f"did you mean {near[0]}?" if near else "it changes nothing"
    return f"{allocator}:{variable}={value}: this {allocator} reads no variable of that name; {hint}"


def names(allocator: Allocator) -> frozenset[str]:
    """The variables that an allocator reads, as far as its files name them; empty where they cannot be read."""
    found: set[str] = set()
    for file in _files(allocator):
        try:
            found |= named_in(Path(file).read_bytes())
        except OSError:
            return frozenset()
    return frozenset(found)


def named_in(content: bytes) -> frozenset[str]:
    """The names of variables of allocators in a file's content."""
    found = {name for each in _NAME.findall(content) if _OF_ALLOCATORS.fullmatch(name := each.decode())}
    if b"mimalloc_\0" in content:
        found |= {_MIMALLOC + each.decode().upper() for each in _OPTION.findall(content)}
    return frozenset(found | {_OF_THE_LOADER})


def _files(allocator: Allocator) -> list[str]:
    """The allocator's file, its own libraries beside it (TBB's reads the variables), and glibc's loader, which does."""
    if allocator.file is None:
        return []
    try:
        facts = elf.inspect(allocator.file)
    except (OSError, ValueError):
        return []
    beside = [Path(allocator.file).with_name(needed) for needed in facts.needed if "malloc" in needed]
    loader = [facts.interpreter] if facts.interpreter and "malloc" in facts.exports else []
    return [allocator.file, *(str(each) for each in beside if each.exists()), *loader]
