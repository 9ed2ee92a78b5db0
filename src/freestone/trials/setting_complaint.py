"""What an allocator, or the dynamic linker, says of a setting that it does not take. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_WORDS: Final = {
    r"FREESTONE_OPTIONS": r"freestone: FREESTONE_OPTIONS: .* ignored\b.*",
    r"\w*MALLOC_CONF": r"<jemalloc>: (?:Invalid|Malformed|Out-of-range|Conf string|Error).*",
    r"GLIBC_TUNABLES": r"WARNING: ld\.so: invalid GLIBC_TUNABLES .*",
}
"""Variables -> what is said of a value that is not understood."""


def complaint(stderr: str, settings: Iterable[str]) -> str | None:
    """The line in which a setting was refused; None where there is none.

    Args:
        stderr: the beginning of what the program and its allocator have written.
        settings: the variables under test; nothing is read of others, which are the program's own affair.
    """
    said = [words for variable, words in _WORDS.items() if any(re.fullmatch(variable, name) for name in settings)]
    for line in stderr.splitlines():
        if any(re.fullmatch(words, line.strip(), re.IGNORECASE) for words in said):
            return line.strip()[:200]
    return None
