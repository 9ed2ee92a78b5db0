r"""How a configuration is written: ``NAME[:VARIABLE=VALUE...]``, several with commas between. Pure.

``glibc,glibc:MALLOC_ARENA_MAX=2,jemalloc:MALLOC_CONF=background_thread:true,dirty_decay_ms:0`` are three. Values hold
commas and colons of their own, so these separate only where what follows looks like what they separate:

- a colon begins a setting where ``VARIABLE=`` follows, a name in capitals;
- a comma behind a setting begins a configuration where a name follows that is alone or has a setting, a path of a
  library (it holds ``/`` or ends in ``.so``), or nothing;
- every other colon or comma belongs to the value. A backslash before a comma, a colon or a backslash makes it so.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from freestone.allocators.errors import UnknownAllocator

_VARIABLE: Final = r"[A-Z_][A-Z0-9_]*="
_NAME: Final = r"[A-Za-z][\w.+-]*"
_PATH: Final = r"[^,:\\]*(?:/[^,:\\]*|\.so(?:\.[\d.]+)?)"
_ENDS: Final = rf"\s*(?=\Z|,|:{_VARIABLE})"
_BEGINS_SETTING: Final = re.compile(_VARIABLE)
_BEGINS_CONFIGURATION: Final = re.compile(rf"\s*(?:\Z|,|(?:{_NAME}|{_PATH}){_ENDS})")
_FIRST_WORD: Final = re.compile(rf"\s*({_NAME})")
_ESCAPED: Final = ",:\\"
_PROGRAMS: Final = frozenset({"PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT"})
"""Variables that say which programs and libraries are run: with another value it is another program."""


@dataclass(frozen=True)
class Asked:
    """One configuration as the user wrote it: an allocator's name, path or NAME=PATH, and variables for the program."""

    allocator: str
    settings: Mapping[str, str] = field(default_factory=dict)


def read(text: str, known: Collection[str] = ()) -> list[Asked]:
    """The configurations of a list, in its order. Empty ones are left out.

    Args:
        text: what the user wrote.
        known: names of allocators. One behind a comma that would belong to a value is a slip, and refused.

    Raises:
        UnknownAllocator: a setting is none, has no allocator, or stands twice; the message is one line.
    """
    found: list[Asked] = []
    place = 0
    while place <= len(text):
        pieces, place = _pieces(text, place, known)
        if any(piece.strip() for piece in pieces):
            found.append(_asked(pieces))
    return found


def write(name: str, settings: Mapping[str, str], known: Collection[str] = ()) -> str:
    """What :func:`read` reads as this one configuration, also between others; the name of a configuration.

    Args:
        name: of its allocator.
        settings: variables for the program's environment.
        known: names of allocators that the reader will know.
    """
    written = ""
    for variable, value in reversed(list(settings.items())):
        for letter in reversed(value):
            literal = letter + written
            means_more = (
                letter == "\\"
                or (letter == ":" and _BEGINS_SETTING.match(written))
                or (letter == "," and (_BEGINS_CONFIGURATION.match(written) or _slip(written, known)))
            )
            written = "\\" + literal if means_more else literal
        written = f":{variable}={written}"
    return name + written


def _pieces(text: str, place: int, known: Collection[str]) -> tuple[list[str], int]:
    """The parts of one configuration, backslashes taken away, and where the next one begins."""
    pieces = [""]
    while place < len(text):
        letter, rest = text[place], text[place + 1 :]
        place += 1
        if letter == "\\" and rest[:1] and rest[0] in _ESCAPED:
            pieces[-1] += rest[0]
            place += 1
        elif letter == ":" and _BEGINS_SETTING.match(rest):
            pieces.append("")
        elif letter == "," and (len(pieces) == 1 or _BEGINS_CONFIGURATION.match(rest)):
            return pieces, place
        else:
            if letter == ",":
                _refuse(rest, _slip(rest, known))
            pieces[-1] += letter
    return pieces, place + 1


def _slip(rest: str, known: Collection[str]) -> str | None:
    """The allocator whose name stands behind a comma that would belong to a value."""
    word = _FIRST_WORD.match(rest)
    return word[1] if word and word[1] in known else None


def _refuse(rest: str, allocator: str | None) -> None:
    if allocator is not None:
        said = rest.strip().partition(",")[0]
        raise UnknownAllocator(
            f"'{said}' is no configuration; write {allocator}:VARIABLE=VALUE, or a backslash before the comma "
            "where it belongs to the value before"
        )


_TAKES = {
    "freestone": ("FREESTONE_OPTIONS=", r"\w+=.+"),
    "jemalloc": ("MALLOC_CONF=", r"\w+:.+"),
    "glibc": ("GLIBC_TUNABLES=glibc.malloc.", r"[a-z_]+=.+"),
}
"""What stands before a setting that was given by its own name, and how such settings look."""


def _asked(pieces: list[str]) -> Asked:
    allocator = pieces[0].strip()
    if not allocator:
        raise UnknownAllocator(f"':{pieces[1]}' sets something for no allocator; write NAME:{pieces[1]}")
    name, colon, rest = allocator.partition(":")
    if colon and "/" not in name:
        takes, form = _TAKES.get(name, ("", ""))
        if re.fullmatch(form, rest):
            raise UnknownAllocator(f"'{rest}' is no setting of {name}; write {name}:{takes}{rest}")
        raise UnknownAllocator(
            f"'{rest}' is no setting of {name}; write {name}:VARIABLE=VALUE, the variable in capitals"
        )
    settings: dict[str, str] = {}
    for piece in pieces[1:]:
        variable, _, value = piece.partition("=")
        if variable in _PROGRAMS:
            raise UnknownAllocator(f"{variable} is no setting of {allocator}: it would start other programs; use --env")
        if variable in settings:
            raise UnknownAllocator(f"{variable} is set twice for {allocator}")
        settings[variable] = value
    return Asked(allocator, settings)
