"""Contention between threads, counted: locks, cache lines that travel, system calls, and the waiting they lead to.

``make scale`` runs it. No machine of many CPUs is needed: threads take turns in a library that counts, and a simulator
plays what each was counted to do on a CPU of its own.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from conformance.markdown import origin
from made_part import put
from scale import contention, counted
from scale.counted import ARENA, GROWING, HEAP, OTHER, Counted, NotCounted

REPOSITORY = Path(__file__).resolve().parents[2]
MAKER = "make scale"
PATTERNS = ("churn", "produce", "hand-over")
THREADS = (1, 8, 64)
HEAPS = (1, 8, 64)
WARM, COUNTED, COUNTED_OF_ALL = 100_000, 20_000, 200_000
QUICK = 50
"""The fraction of the calls that is made to see that it works."""
HELD_WORDS = ("8", "20000", "20000")
HELD = {HEAP: "/heap.c", ARENA: "&arena.lock"}
"""A part of the names of the locks of a kind, in the counted library."""
CALL_NS = (5.0, 100.0)
HANDOVER_NS = (200.0, 1000.0)
INSTRUCTION_NS = 0.5
GROWING_NS = 5000.0
"""A hold of a lock under which the kernel is asked for addresses."""
PLACES = 8
COMPILER = ("gcc", "-std=gnu17", "-O2", "-g", "-fno-builtin", "-Wall", "-Wextra", "-D_GNU_SOURCE", "-pthread")
MEASURES: Mapping[str, Callable[[Counted], float]] = {
    "slow paths": lambda run: run.slow_paths,
    "heaps' locks": lambda run: run.taken(HEAP),
    "handed over": lambda run: run.handovers(HEAP),
    "the arena's": lambda run: run.taken(ARENA),
    "handed over ": lambda run: run.handovers(ARENA),
    "other locks": lambda run: run.taken(GROWING) + run.taken(OTHER),
    "lines": lambda run: run.travels,
    "system calls": lambda run: run.system_calls,
}


class Failed(Exception):
    """A program that did not run, in one line."""


@dataclass(frozen=True)
class Run:
    """A pattern played by threads on heaps, without its events."""

    counted: Counted
    waiting: Mapping[tuple[float, float], tuple[contention.Outcome, str]]
    """By the time of a call and of a handover: the outcome, and the kind of the busiest lock."""


Runs = Mapping[tuple[str, int, int], Run]
"""By pattern, heaps, threads."""
Held = Mapping[tuple[str, str], float]
"""By pattern and kind of lock: instructions while one is held."""


def run(command: Sequence[str], library: Path | None = None, heaps: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a program, under a library without its keeper, which goes by the machine's clock."""
    options = {"LD_PRELOAD": str(library), "FREESTONE_OPTIONS": f"heaps={heaps},keeper=0"} if library else {}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **options})
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise Failed(f"{Path(command[0]).name} {' '.join(command[1:])}: {said}")
    return done


def build(folder: Path) -> Path:
    """Compile the program of tests/scale; the library finds its clock before libc's."""
    output = folder / "lockstep"
    run([*COMPILER, "-rdynamic", str(REPOSITORY / "tests" / "scale" / "lockstep.c"), "-o", str(output)])
    return output


def lockstep(program: Path, library: Path, heaps: int, words: Sequence[str]) -> Counted:
    """Return the counts of a run."""
    return counted.read(run([str(program), *words], library, heaps).stdout)


def instructions_held(program: Path, library: Path, heaps: int, words: Sequence[str], kind: str) -> float:
    """Return the mean of instructions while a lock of the kind is held."""
    callgrind = ("valgrind", "--tool=callgrind", "--collect-atstart=no", "--callgrind-out-file=/dev/null")
    intercept = "--soname-synonyms=somalloc=nouserintercepts"
    done = run([*callgrind, intercept, str(program), *words, HELD[kind]], library, heaps)
    collected = re.search(r"Collected : (\d+)", done.stderr)
    taken = sum(lock.taken for lock in counted.read(done.stdout).locks if lock.kind == kind)
    if collected is None or taken == 0:
        raise NotCounted(f"no lock of the kind {kind} was taken under callgrind")
    return int(collected[1]) / taken


def measure(library: Path, quick: bool, folder: Path) -> tuple[Runs, Held]:
    """Count all patterns."""
    program, less = build(folder), QUICK if quick else 1
    runs: dict[tuple[str, int, int], Run] = {}
    held: dict[tuple[str, str], float] = {}
    for pattern in PATTERNS:
        print(f"scale: {pattern}", file=sys.stderr, flush=True)
        for kind in HELD:
            held[pattern, kind] = instructions_held(program, library, 8, (pattern, *HELD_WORDS), kind)
        for heaps in HEAPS:
            for threads in THREADS:
                calls = max(COUNTED, COUNTED_OF_ALL // threads) // less
                found = lockstep(program, library, heaps, (pattern, str(threads), str(WARM // less), str(calls)))
                waiting = waits(found, threads, {kind: held[pattern, kind] for kind in HELD})
                runs[pattern, heaps, threads] = Run(replace(found, events=()), waiting)
    return runs, held


def waits(
    found: Counted, threads: int, instructions: Mapping[str, float]
) -> dict[tuple[float, float], tuple[contention.Outcome, str]]:
    """Play a run by the times of a call and of a handover."""
    kinds = {lock.number: lock.kind for lock in found.locks}
    hold = {
        number: GROWING_NS if kind == GROWING else instructions.get(kind, instructions[ARENA]) * INSTRUCTION_NS
        for number, kind in kinds.items()
    }
    steps = contention.scripts(found.events, threads)
    answer = {}
    for call in CALL_NS:
        for handover in HANDOVER_NS:
            outcome = contention.play(steps, contention.Prices(call, hold, handover))
            answer[call, handover] = (outcome, kinds.get(outcome.busiest, "") if outcome.busiest is not None else "")
    return answer


# --- tables ---------------------------------------------------------------------------------------------------------


def parts(runs: Runs, held: Held) -> dict[str, str]:
    """Return the tables of the page, by name."""
    rows = [[pattern, *(f"{held[pattern, kind]:,.0f}" for kind in HELD)] for pattern in PATTERNS]
    return {
        "counts": counts(runs),
        "places": places(runs),
        "held": _table(["pattern", "a heap's lock", "the arena's"], rows),
        "waiting": waiting(runs),
    }


def counts(runs: Runs) -> str:
    """Return what is counted per million calls: at 1, 8 and 64 threads in each cell."""
    rows = []
    for pattern in PATTERNS:
        for heaps in HEAPS:
            cells = (
                (f"{of(runs[pattern, heaps, threads].counted):,.0f}" for threads in THREADS) for of in MEASURES.values()
            )
            rows.append([f"{pattern}, {heaps}", *map(" · ".join, cells)])
    return _table(["pattern, heaps", *map(str.strip, MEASURES)], rows)


def places(runs: Runs) -> str:
    """Return the lines that travel for an atomic at the most threads on as many heaps."""
    found = [
        {site.name: travels for site, travels in runs[pattern, HEAPS[-1], THREADS[-1]].counted.most_travelled(PLACES)}
        for pattern in PATTERNS
    ]
    names = sorted(
        {name for each in found for name in each}, key=lambda name: -sum(each.get(name, 0) for each in found)
    )
    rows = [[f"`{name}`", *(f"{each[name]:,.0f}" if name in each else "" for each in found)] for name in names[:PLACES]]
    return _table(["place", *PATTERNS], rows)


def waiting(runs: Runs) -> str:
    """Return the share of threads' time that they would wait, by the simulator."""
    asked = [(threads, call, handover) for threads in THREADS[1:] for call in CALL_NS for handover in HANDOVER_NS]
    rows = []
    for pattern in PATTERNS:
        for heaps in HEAPS:
            cells = []
            for threads, call, handover in asked:
                outcome, kind = runs[pattern, heaps, threads].waiting[call, handover]
                whose = f" ({kind} {100 * outcome.held:.0f} %)" if outcome.waiting >= 0.01 else ""
                cells.append(f"{100 * outcome.waiting:.0f} %{whose}")
            rows.append([f"{pattern}, {heaps}", *cells])
    return _table(["pattern, heaps", *(f"{t}: {call:g} ns, {handover:g} ns" for t, call, handover in asked)], rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    marks = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, marks, *rows])


def main(words: Sequence[str]) -> int:
    """Count, and print the tables or put them into the page; 2 if something could not be counted."""
    parser = argparse.ArgumentParser(prog="scale", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--library", type=Path, default=REPOSITORY / "build" / "counting" / "libfreestone.so")
    parser.add_argument("--quick", action="store_true", help="little of everything, to see that it works")
    parser.add_argument("--page", type=Path, help="the page that gets the tables")
    told = parser.parse_args(words)
    try:
        with tempfile.TemporaryDirectory(prefix="freestone-scale-") as scratch:
            made = parts(*measure(told.library.resolve(), told.quick, Path(scratch)))
        for name, text in ({"origin": origin()} | made).items():
            if told.page:
                put(told.page, text, f"{MAKER}: {name}")
            else:
                print(f"{text}\n")
    except (Failed, NotCounted, OSError) as error:
        print(f"scale: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
