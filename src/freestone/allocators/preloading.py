"""Which paths the loader can be given in ``LD_PRELOAD``."""

from __future__ import annotations

import re
from os import PathLike
from typing import Final

UNREADABLE: Final = "cannot be preloaded: its path holds a space or a colon"
"""What follows the name of a file that the loader cannot be given."""


def is_readable(path: str | PathLike[str]) -> bool:
    """Whether a path comes out of ``LD_PRELOAD`` whole: the loader splits at spaces and colons and knows no escape."""
    return re.search(r"[\s:]", str(path)) is None
