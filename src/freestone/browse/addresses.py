"""What a request may ask for, and from whom. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import parse_qs, quote, unquote

_HERE: Final = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?", re.IGNORECASE | re.ASCII)


def is_for_here(hosts: Sequence[str]) -> bool:
    """Whether a request was meant for this machine, by its Host headers.

    A page of somebody else's can make its own name lead here (DNS rebinding) and would then read the answer as its own;
    the name it asked for still stands in the request.
    """
    return len(hosts) == 1 and _HERE.fullmatch(hosts[0].strip()) is not None


def address(parts: Sequence[str]) -> str:
    """The address of a file.

    Args:
        parts: the folders on the way to it, and its name.
    """
    return "/" + "/".join(quote(part, safe="", errors="surrogateescape") for part in parts)


def parts(target: str) -> tuple[str, ...] | None:
    """The folders and the name that the target of a request says; None where no file of ours can be called that.

    Args:
        target: as it stands in the request, with its query or without.
    """
    path = target.partition("#")[0].partition("?")[0]
    if not path.startswith("/"):
        return None
    # Taken apart before it is decoded, and decoded once: what is encoded in a part stays in that part.
    found = tuple(unquote(part, errors="surrogateescape") for part in path[1:].split("/"))
    if found == ("",):
        return ()
    return None if any(part in ("", ".", "..") or re.search(r"[/\0]", part) for part in found) else found


def query(target: str) -> str:
    """What is searched for, by the target of a request; empty for everything."""
    try:
        said = parse_qs(target.partition("#")[0].partition("?")[2], max_num_fields=20)
    except ValueError:
        return ""
    return " ".join(said.get("q", []))
