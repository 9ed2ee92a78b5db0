"""Programs and libraries of cases, compiled when they are older than their sources."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BUILT = REPOSITORY / "build"
# The compiler must not know what malloc is: it would drop the very calls under test.
OPTIONS = ("-O1", "-g", "-fno-builtin", "-Wall", "-Wextra", "-pthread", "-D_GNU_SOURCE")
COMPILERS = {".c": ("gcc", "-std=gnu17"), ".cpp": ("g++", "-std=gnu++17")}


class BuildFailed(Exception):
    """The compiler's complaint."""


def make(output: Path, sources: Sequence[Path], options: Sequence[str], newer: Sequence[Path] = ()) -> None:
    """Compile what is older than its sources, or than ``newer`` files.

    Args:
        output: a program, or what the options make of it.
        sources: the first says the language.

    Raises:
        BuildFailed: the compiler refused it.
    """
    newest = max(path.stat().st_mtime for path in (*sources, *newer))
    if output.exists() and output.stat().st_mtime >= newest:
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    command = [*COMPILERS[sources[0].suffix], *OPTIONS, *map(str, sources), *options, "-o", str(output), "-ldl", "-lm"]
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise BuildFailed(f"{sources[0].name} cannot be compiled:\n{done.stderr}")
