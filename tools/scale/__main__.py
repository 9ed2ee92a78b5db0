"""How libfreestone scales, by counting: threads and heaps, live blocks, addresses.

Usage (``make scale``): ``PYTHONPATH=tools python3 -m scale [--product LIBRARY] [--counting LIBRARY] [--quick]
[--page FILE]``

Exit status 1: something that is to be flat is not; 2: something could not be counted.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from scale import contention, counted, running
from scale.counted import ARENA, GROWING, HEAP, NotCounted
from scale.page import (
    CALL_NS,
    GROWING_NS,
    HANDOVER_NS,
    HEAPS,
    INSTRUCTION_NS,
    LOGARITHMIC,
    PATTERNS,
    THREADS,
    Depth,
    Key,
    Run,
    Story,
    deeper,
)
from scale.running import REPOSITORY, Failed, tell
from scale.said import text

WARM, COUNTED, COUNTED_OF_ALL = 100_000, 20_000, 200_000
QUICK = 50
"""How many times less is done where it is only tried."""
HELD_WORDS = ("8", "20000", "20000")
LIVE = (10_000, 1_000_000, 10_000_000, 100_000_000)
GIB = 1 << 30
MIB = 1 << 20
SPREAD = ((1, MIB), (20, MIB), (200, MIB), (200, 64 * MIB), (200, 160 * MIB))
"""GiB in blocks of so many bytes."""


def measure(product: Path, counting: Path, quick: bool, folder: Path) -> Story:
    """All that the page says.

    Raises:
        Failed, NotCounted: it could not be counted.
    """
    lockstep, depth = (running.program(name, folder) for name in ("lockstep", "depth"))
    less = QUICK if quick else 1
    held = {}
    runs: dict[Key, Run] = {}
    for pattern in PATTERNS:
        for kind in (HEAP, ARENA):
            tell(f"{pattern}: instructions while a lock of the kind {kind} is held")
            held[pattern, kind] = running.instructions_held(lockstep, counting, 8, (pattern, *HELD_WORDS), kind)
        for heaps in HEAPS:
            for threads in THREADS:
                tell(f"{pattern}: {threads} threads, {heaps} heaps")
                calls = max(COUNTED, COUNTED_OF_ALL // threads) // less
                words = (pattern, str(threads), str(WARM // less), str(calls))
                found = running.lockstep(lockstep, counting, heaps, words)
                runs[pattern, heaps, threads] = Run(
                    counted=replace(found, events=()),
                    waiting=waits(found, threads, {kind: held[pattern, kind] for kind in (HEAP, ARENA)}),
                )
    live = []
    for blocks in LIVE[: 2 if quick else None]:
        tell(f"{blocks:,} live blocks")
        live.append(Depth(f"{blocks:,} live", running.depth(depth, product, blocks, 0, MIB)))
    spread = [Depth("none", live[0].costs)]
    for gib, each in SPREAD[: 2 if quick else None]:
        tell(f"{gib} GiB in blocks of {each // MIB} MiB")
        costs = running.depth(depth, product, LIVE[0], gib * GIB // each, each)
        spread.append(Depth(f"{gib} GiB by {each // MIB} MiB", costs))
    return Story(
        day=datetime.date.today().isoformat(),
        machine=f"Linux {platform.release()}, {platform.machine()}, {os.cpu_count()} CPUs",
        runs=runs,
        held=held,
        live=live,
        spread=spread,
    )


def waits(
    found: counted.Counted, threads: int, instructions: dict[str, float]
) -> dict[tuple[float, float], tuple[contention.Outcome, str]]:
    """What the simulator makes of a run, and the kind of the busiest lock, by what a call and a handover take."""
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


def main(words: Sequence[str]) -> int:
    """Exit status as in the module's description."""
    parser = argparse.ArgumentParser(prog="scale", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--product", type=Path, default=REPOSITORY / "build" / "libfreestone.so")
    parser.add_argument("--counting", type=Path, default=REPOSITORY / "build" / "counting" / "libfreestone.so")
    parser.add_argument("--quick", action="store_true", help="little of everything, to see that it works")
    parser.add_argument("--page", type=Path, help="where to write it")
    told = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="freestone-scale-") as scratch:
        try:
            story = measure(told.product.resolve(), told.counting.resolve(), told.quick, Path(scratch))
        except (Failed, NotCounted, OSError) as error:
            print(f"scale: {error}", file=sys.stderr)
            return 2
    said = text(story)
    if told.page:
        told.page.write_text(said, encoding="utf-8")
    else:
        print(said)
    deep = [each for depths in (story.live, story.spread) for each in deeper(depths)]
    found = [each for each in deep if each.grows and each.name not in LOGARITHMIC]
    for each in found:
        means = f"{each.first.mean:.0f} instructions, and {each.most.mean:.0f}"
        print(f"scale: {each.name}: {means} beside {each.title}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
