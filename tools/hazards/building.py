"""The programs of the hazards, compiled as they are needed: those of their own, and those of the allocator's tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from hazards.catalogue import Hazard

REPOSITORY = Path(__file__).resolve().parents[2]
SERVING = REPOSITORY / "tests" / "hazards" / "serving.c"
"""Linked into every program: proves that the allocator asked for serves it."""
HEADERS = ("allocator/include", "allocator/tests", "tests/hazards")
# The compiler must not know what malloc is: it would drop the very calls under test.
OPTIONS = (
    "-O1",
    "-g",
    "-fno-builtin",
    "-Wall",
    "-Wextra",
    "-pthread",
    "-D_GNU_SOURCE",
    "-DFREESTONE_TESTS_PRELOAD",
    "-DFREESTONE_TESTS_ANY_ALLOCATOR",
)
COMPILERS = {".c": ("gcc", "-std=gnu17"), ".cpp": ("g++", "-std=gnu++17")}


class BuildFailed(Exception):
    """What the compiler says."""


def program_command(source: Path, more: Sequence[Path], output: Path) -> list[str]:
    """A program: its source, the proof of service, and sources and libraries it is linked to."""
    # A path to search in costs every start some calls, which hazard 34 counts: only where there is a library to find.
    search = [f"-Wl,-rpath,{output.parent}"] if any(path.suffix == ".so" for path in more) else []
    return [
        *COMPILERS[source.suffix],
        *OPTIONS,
        *(f"-I{REPOSITORY / folder}" for folder in HEADERS),
        str(source),
        *map(str, more),
        *search,
        *("-o", str(output), "-ldl", "-lm"),
    ]


def library_command(source: Path, output: Path) -> list[str]:
    """A library that a program loads, is linked to, or has before its allocator."""
    return [*program_command(source, (), output), "-shared", "-fPIC"]


def headers() -> list[Path]:
    """What any program may include."""
    return sorted(path for name in HEADERS for path in (REPOSITORY / name).rglob("*.h"))


def build(hazards: Iterable[Hazard], folder: Path, libraries: Iterable[str] = ()) -> None:
    """Compiles what is older than its sources; ``libraries`` come on top of what the hazards name.

    Raises:
        BuildFailed: the compiler refused one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    serving = folder / "serving.o"
    _make(serving, [SERVING], [*program_command(SERVING, (), serving), "-c"])
    hazards = list(hazards)
    for name in dict.fromkeys([*libraries, *(name for each in hazards for name in each.libraries)]):
        source = REPOSITORY / name
        output = folder / f"{source.stem}.so"
        _make(output, [source], library_command(source, output))
    for each in hazards:
        for name in each.programs:
            source = REPOSITORY / name
            if source.suffix not in COMPILERS:
                continue
            more = [REPOSITORY / other if other.endswith(".c") else folder / other for other in each.link]
            output = folder / source.stem
            _make(output, [source, *more, serving], program_command(source, [serving, *more], output))


def _make(output: Path, inputs: Sequence[Path], command: Sequence[str]) -> None:
    newest = max(path.stat().st_mtime for path in (*inputs, *headers()))
    if output.exists() and output.stat().st_mtime >= newest:
        return
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise BuildFailed(f"{inputs[0].name} cannot be compiled:\n{done.stderr}")
