"""Was every program image served by the allocator it was meant to run under? Read from the notes of a preload."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

SOURCE = Path(__file__).with_name("note_provider.c")


def build_preload(compiler: str, to: Path) -> Path:
    """Compiles the preload that notes, from inside each process, whose malloc, calloc, realloc and free it calls."""
    flags = ["-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *flags, "-o", str(to), str(SOURCE), "-ldl"], check=True)
    return to


def lack(lines: Iterable[str], library: str, images: Iterable[str]) -> str | None:
    """What the proof lacks; None where it is whole.

    Args:
        lines: of the notes: a program's path and the files its four entry points lead to, with tabs between.
        library: the real path of the file that has to be behind all four.
        images: file names of programs of which at least one each has to be among the notes.
    """
    seen = set()
    for line in lines:
        path, *providers = line.split("\t")
        seen.add(Path(path).name)
        strangers = {os.path.realpath(provider) for provider in providers} - {library}
        if strangers or len(providers) != 4:
            return f"{path} was served by {', '.join(sorted(strangers)) or 'nobody'}"
    missing = sorted(set(images) - seen)
    return f"{', '.join(missing)} ran without being seen" if missing else None
