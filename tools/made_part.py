"""The part of a page that a command makes: what stands between two marks that name it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

END: Final = "<!-- end of what was made -->"


def begin(maker: str) -> str:
    """The mark before what a command makes."""
    return f"<!-- made by {maker} -->"


def put(page: Path, text: str, maker: str) -> None:
    """Replace what stands between the marks of a command.

    Args:
        maker: the command, as it is typed.

    Raises:
        OSError: the page cannot be read or written.
        ValueError: the page has no such marks.
    """
    whole = page.read_text(encoding="utf-8")
    before, mark, rest = whole.partition(begin(maker))
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise ValueError(f"{page} has no marks {begin(maker)} and {END}")
    page.write_text(f"{before}{mark}\n\n{text}\n\n{end}{after}", encoding="utf-8")


def deliver(page: Path | None, text: str, maker: str) -> int:
    """Print what was made, or put it into a page; the exit status of the command that made it."""
    if page is None:
        print(text)
        return 0
    try:
        put(page, text, maker)
    except (OSError, ValueError) as error:
        print(f"{maker}: {error}", file=sys.stderr)
        return 1
    return 0
