#!/usr/bin/env python3
"""Writes the names that the Rust crate's C is compiled with: a header that the crate's build puts before every source.

Usage: ``python3 tools/crate_names.py [--check] build/libfreestone.a packaging/crate/names.h``

A Rust program links the library beside other C: neither may the library's malloc be everybody's, unless that is asked
for, nor may a name that is the library's own business be in the way of another's. The archive of `make build` has both
kinds of names: offered ones, and own ones, which begin with ``freestone_own_`` (cmake/OwnNames.cmake).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

OWN = "freestone_own_"
IN_ASSEMBLY = {"confine_is_plain_clone3", "confine_syscall", "libc_syscall_function"}
"""Written into instructions, where no preprocessor comes; of api_confine.c, which only the feature override has."""


def defined(archive: Path) -> set[str]:
    """The global names that an archive defines."""
    listed = subprocess.run(["nm", "-g", "--defined-only", archive], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in listed.stdout.splitlines() if len(line.split()) == 3}


def header(names: Iterable[str]) -> str:
    """The header for the names of an archive."""
    every = sorted(set(names))
    own = [name.removeprefix(OWN) for name in every if name.startswith(OWN)]
    offered = [name for name in every if not name.startswith(("freestone_", "_Z"))]
    lines = [
        "/* What the crate's C calls the library's names. Made from its archive: python3 tools/crate_names.py */",
        "#ifndef FREESTONE_OVERRIDE",
        *(f"#define {name} freestone_{name}" for name in offered),
        "#endif",
        *(f"#define {name} {OWN}{name}" for name in own if name not in IN_ASSEMBLY),
    ]
    return "\n".join(lines) + "\n"


def main(words: list[str]) -> int:
    """Write the header, or with --check say whether it is up to date."""
    archive, file = map(Path, words[-2:])
    made = header(defined(archive))
    if words[0] != "--check":
        file.write_text(made, encoding="ascii")
    elif file.read_text(encoding="ascii") != made:
        print(f"{file} is not up to date: python3 tools/crate_names.py {archive} {file}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
