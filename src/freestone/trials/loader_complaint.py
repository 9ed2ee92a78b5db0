"""What the dynamic linker says of a preload that it does not take. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable


def complaint(stderr: str, files: Iterable[str]) -> str | None:
    """The dynamic linker's own words on why a preloaded file is not in force; None when it said nothing of the kind.

    ``stderr`` is where the program's messages go too, so a line counts only if it has the linker's form and names one
    of ``files``: those preloaded, and the libraries they need.
    """
    names = [file for file in files if file]
    for line in stderr.splitlines():
        ignored = re.search(r"ERROR: ld\.so: object '(.+)' from LD_PRELOAD cannot be preloaded \((.+)\): ignored", line)
        if ignored and ignored[1] in names:
            return f"ld.so ignored '{re.sub('/+', '/', ignored[1])}': {ignored[2]}"
        for marker in (": error while loading shared libraries: ", ": symbol lookup error: "):
            said = line.partition(marker)[2]
            if any(name in said for name in names):
                return re.sub("/{2,}", "/", said)[:200]
    return None
