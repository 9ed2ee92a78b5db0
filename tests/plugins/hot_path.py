#!/usr/bin/env python3
"""Count what the hot path of a function in a shared library executes: instructions, loads, stores, branches.

The hot path is the fall-through path: every conditional jump is taken to be not taken, up to the first `ret`. The
compiler lays the expected path out that way. x86-64 only (counts come from the disassembly's operands).

    tests/plugins/hot_path.py build/libfreestone.so malloc free
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass

LOADS_AND_STORES = {"add", "sub", "and", "or", "xor", "inc", "dec", "xchg"}
READS_ONLY = {"cmp", "test"}


@dataclass(frozen=True)
class Counts:
    """What one pass over the hot path executes. A read-modify-write of memory is one load and one store."""

    instructions: int
    loads: int
    stores: int
    branches: int
    atomics: int


def disassemble(library: str, function: str) -> list[str]:
    """Instructions from the function's address on, as objdump prints them (AT&T syntax), without addresses.

    By address and not by name: of several names for one function the disassembler knows only one.

    Raises:
        ValueError: the library exports no such function.
    """
    symbols = _run("nm", "--dynamic", "--defined-only", library)
    found = re.search(rf"^([0-9a-f]+) \w {re.escape(function)}(@|$)", symbols, re.MULTILINE)
    if found is None:
        raise ValueError(f"{library} exports no function '{function}'")
    start = int(found[1], 16)
    text = _run(
        "objdump", "-d", "--no-show-raw-insn", f"--start-address={start}", f"--stop-address={start + 512}", library
    )
    lines = [line.split("\t", 1)[1] for line in text.splitlines() if re.match(r"\s+[0-9a-f]+:\t", line)]
    return [line.split("#")[0].split("<")[0].strip() for line in lines]


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"{command[0]} failed: {done.stderr.strip()}")
    return done.stdout


def count(instructions: list[str]) -> Counts:
    """Counts along the fall-through path; a path that ends without `ret` is an error.

    Raises:
        ValueError: the path leaves the function or makes a call.
    """
    total = loads = stores = branches = atomics = 0
    for text in instructions:
        mnemonic, _, operands = text.partition(" ")
        total += 1
        if mnemonic == "lock":
            atomics += 1
            mnemonic, _, operands = operands.partition(" ")
        if mnemonic.startswith("ret"):
            return Counts(total, loads, stores, branches, atomics)
        if mnemonic in ("call", "jmp"):
            raise ValueError(f"the hot path leaves the function: {text}")
        if mnemonic.startswith("j"):
            branches += 1
            continue
        if "(" not in operands or mnemonic.startswith(("lea", "nop", "endbr")):
            continue
        base = mnemonic.rstrip("bwlq") if mnemonic not in ("sub",) else mnemonic
        writes = operands.rstrip().endswith(")") and base not in READS_ONLY
        if not writes:
            loads += 1
        else:
            stores += 1
            loads += base in LOADS_AND_STORES
        atomics += base == "xchg"
    raise ValueError("the hot path has no return")


def main(arguments: list[str]) -> int:
    """Print one line a function; 2 when the arguments are off."""
    if len(arguments) < 2:
        print("usage: hot_path.py LIBRARY FUNCTION...", file=sys.stderr)
        return 2
    library, *functions = arguments
    try:
        counts = {function: count(disassemble(library, function)) for function in functions}
    except (ValueError, OSError) as error:
        print(f"hot_path.py: {library}: {error}", file=sys.stderr)
        return 1
    print(f"{'function':10} {'instructions':>12} {'loads':>6} {'stores':>6} {'branches':>8} {'atomics':>7}")
    for function, c in counts.items():
        print(f"{function:10} {c.instructions:12} {c.loads:6} {c.stores:6} {c.branches:8} {c.atomics:7}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
