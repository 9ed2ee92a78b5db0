#!/usr/bin/env python3
"""Count the instructions of a short thread's life under an allocator: 450 blocks of 16 to 1,016 bytes, taken and freed.

By callgrind: the difference of a run of 120 lives and one of 20, so that the program's start does not count. libc's
work for the thread and the program's own loop are in it. The allocators are libraries to be preloaded, or `glibc`.

    tests/plugins/thread_life.py glibc build/libfreestone.so
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import callgrind

SOURCE = Path(__file__).resolve().parents[1] / "allocator" / "thread_life.c"
FEW, MANY = 20, 120
NONE = "glibc"


def build(folder: Path) -> Path:
    """The program, compiled into the folder.

    Raises:
        ValueError: the compiler refuses.
    """
    program = folder / SOURCE.stem
    command = ["cc", "-O2", "-fno-builtin", "-pthread", "-o", str(program), str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ValueError(f"cc failed: {next(iter(done.stderr.splitlines()), f'status {done.returncode}')}")
    return program


def of_a_life(program: Path, allocator: str) -> float:
    """Instructions of one life.

    Raises:
        ValueError: it cannot be counted, or the library is not there; the dynamic linker would go on without it.
    """
    if allocator != NONE and not Path(allocator).is_file():
        raise ValueError(f"there is no library '{allocator}'")
    few, many = (_instructions(program, allocator, lives) for lives in (FEW, MANY))
    return (many - few) / (MANY - FEW)


def _instructions(program: Path, allocator: str, lives: int) -> int:
    kept = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "FREESTONE_OPTIONS")}
    preload = {} if allocator == NONE else {"LD_PRELOAD": str(Path(allocator).resolve())}
    return callgrind.instructions([str(program), str(lives)], {**kept, **preload})


def main(arguments: list[str]) -> int:
    """Print one line an allocator; 2 when the arguments are off."""
    if not arguments:
        print("usage: thread_life.py ALLOCATOR...", file=sys.stderr)
        return 2
    try:
        with tempfile.TemporaryDirectory() as folder:
            program = build(Path(folder))
            for allocator in arguments:
                print(f"{of_a_life(program, allocator):12,.0f}  {allocator}")
    except (ValueError, OSError) as error:
        print(f"thread_life.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
