"""Names of functions as they are spoken of: short, and never without a beginning."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

UNKNOWN = "???"
"""What valgrind calls a function or a file that it has no name for."""

LONGEST = 52

_VERSION = re.compile(r"@@?[A-Z][\w.]*$")
_OPERATOR = re.compile(r"operator ?(?:new|delete)(?:\[\])?")


def spoken(name: str, file: str) -> str:
    """A function with its source file, as in ``_int_free (malloc.c)``.

    Of a C++ function the arguments and what it returns are left out, and what stands in a template's brackets where
    that makes it too long.
    """
    if name == UNKNOWN:
        return "functions without a name"
    short = brief(name)
    return short if file == UNKNOWN else f"{short} ({PurePosixPath(file).name})"


def brief(name: str) -> str:
    """The name alone, of at most ``LONGEST`` characters."""
    name = _VERSION.sub("", name) or name
    operator = _OPERATOR.match(name)
    short = operator[0] if operator else _qualified(name.replace("(anonymous namespace)::", "")) or name
    if len(short) > LONGEST:
        short = _without_brackets(short)
    return short if len(short) <= LONGEST else f"{short[: LONGEST - 3]}..."


def _qualified(name: str) -> str:
    """Without arguments and without what is returned: the last word before the first argument, brackets aside."""
    if name.startswith("("):  # as in (below main), which is valgrind's own
        return name
    depth, start = 0, 0
    for at, sign in enumerate(name):
        if depth == 0 and sign == "(" and at > start:
            return name[start:at]
        if sign in "<(":  # a bracket that stands by itself belongs to what is returned: decltype (x) y()
            depth += 1
        elif sign in ">)":
            depth = max(0, depth - 1)
        elif depth == 0 and sign == " ":
            start = at + 1
    return name[start:]


def _without_brackets(name: str) -> str:
    """``a<b<c>>::d`` as ``a<...>::d``."""
    depth, kept = 0, []
    for sign in name:
        if sign == "<":
            depth += 1
            if depth == 1:
                kept.append("<...>")
        elif sign == ">" and depth:
            depth -= 1
        elif depth == 0:
            kept.append(sign)
    return "".join(kept)
