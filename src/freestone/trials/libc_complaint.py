"""Why a block came to libc's free though another malloc was preloaded, by what libc writes as it aborts. Pure."""

from __future__ import annotations

_COMPLAINTS = ("free(): invalid pointer", "munmap_chunk(): invalid pointer", "realloc(): invalid pointer")


def explained(stderr: str) -> str | None:
    """The likely reason, if libc's malloc complains of a pointer; else None.

    libc's malloc serves nobody in a program under a preload, unless an object goes past the preload: one opened with
    ``RTLD_DEEPBIND`` takes ``malloc`` and ``free`` from libc.
    """
    lines = stderr.splitlines()
    if not any(line.strip() in _COMPLAINTS for line in lines):
        return None
    return (
        "libc's free got a block of the preloaded malloc: a library opened with RTLD_DEEPBIND goes past every preload"
    )
