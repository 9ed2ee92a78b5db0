"""What a program said, kept small: sizes, a digest of stdout, the end of stderr."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from freestone.records.schema import Output

TAIL_BYTES = 2048
HEAD_BYTES = 16384


def read(stdout: Path, stderr: Path) -> Output:
    """Sizes and digest of captured files. A file that was never made counts as empty."""
    digest = hashlib.sha256()
    stdout_bytes, stdout_lines, end = 0, 0, b"\n"
    if stdout.exists():
        with stdout.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
                stdout_bytes += len(chunk)
                stdout_lines += chunk.count(b"\n")
                end = chunk[-1:]
    return Output(
        stdout_bytes=stdout_bytes,
        stdout_sha256=digest.hexdigest(),
        stdout_lines=stdout_lines + (end != b"\n"),
        stderr_bytes=stderr.stat().st_size if stderr.exists() else 0,
        stderr_tail=_excerpt(stderr, from_end=True),
    )


def head(path: Path) -> str:
    """The first bytes of a file as text: the dynamic linker speaks before the program does."""
    return _excerpt(path, from_end=False)


def _excerpt(path: Path, *, from_end: bool) -> str:
    if not path.exists():
        return ""
    with path.open("rb") as file:
        if from_end:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            return file.read(TAIL_BYTES).decode("utf-8", "replace")
        return file.read(HEAD_BYTES).decode("utf-8", "replace")
