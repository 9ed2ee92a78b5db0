"""Runs the programs of tests/scale under the library that counts and under the product. Native, one after the other."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from scale import counted
from scale.counted import ARENA, HEAP, Cost, Counted, NotCounted

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = REPOSITORY / "tests" / "scale"
COMPILER = ("gcc", "-std=gnu17", "-O2", "-g", "-fno-builtin", "-Wall", "-Wextra", "-D_GNU_SOURCE", "-pthread")
HELD = {HEAP: "/heap.c", ARENA: "&arena.lock"}
"""What is in the names of the locks of a kind, as the counted library has them."""


class Failed(Exception):
    """What did not run, in one line."""


def _run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **(environment or {})}
    )
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise Failed(f"{Path(command[0]).name} {' '.join(command[1:])}: {said}")
    return done


def program(name: str, folder: Path) -> Path:
    """A program of tests/scale, compiled.

    Raises:
        Failed: the compiler refused it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    output = folder / name
    # Its clock is found by the library before libc's.
    _run([*COMPILER, "-rdynamic", str(SOURCES / f"{name}.c"), "-o", str(output)])
    return output


def _served(library: Path, heaps: int = 0) -> dict[str, str]:
    """Without the keeper, who goes by the machine's clock: calls do what it would do."""
    return {"LD_PRELOAD": str(library), "FREESTONE_OPTIONS": f"heaps={heaps},keeper=0"}


def lockstep(lockstep: Path, library: Path, heaps: int, words: Sequence[str]) -> Counted:
    """What a run of the program lockstep counted.

    Raises:
        Failed, NotCounted: it did not run, or not under a library that counts.
    """
    return counted.read(_run([str(lockstep), *words], _served(library, heaps)).stdout)


def instructions_held(lockstep: Path, library: Path, heaps: int, words: Sequence[str], kind: str) -> float:
    """Instructions while a lock of the kind is held, the mean.

    Raises:
        Failed, NotCounted: it did not run, or no such lock was taken.
    """
    callgrind = ("valgrind", "--tool=callgrind", "--collect-atstart=no", "--callgrind-out-file=/dev/null")
    intercept = "--soname-synonyms=somalloc=nouserintercepts"
    done = _run([*callgrind, intercept, str(lockstep), *words, HELD[kind]], _served(library, heaps))
    collected = re.search(r"Collected : (\d+)", done.stderr)
    taken = sum(lock.taken for lock in counted.read(done.stdout).locks if lock.kind == kind)
    if collected is None or taken == 0:
        raise NotCounted(f"no lock of the kind {kind} was taken under callgrind")
    return int(collected[1]) / taken


def depth(depth: Path, library: Path, live: int, blocks: int, bytes_each: int) -> Mapping[str, Cost]:
    """What operations cost beside so many blocks.

    Raises:
        Failed, NotCounted: it did not run, or memory was out.
    """
    words = [str(depth), str(live), str(blocks), str(bytes_each)]
    return counted.costs(_run(words, _served(library)).stdout)


def tell(what: str) -> None:
    """A line on what is done now."""
    print(f"scale: {what}", file=sys.stderr, flush=True)
