#!/usr/bin/env python3
"""How often the lab finds a regression that is there, and accuses a library that is the same: rates.

Usage: ``.venv/bin/python tools/planted/campaign.py [--rounds N] [--window N] [--results FOLDER]``

Builds libfreestone again and again with known faults in it (``plant.c``): 1, 2, 5 and 10 % more work in malloc and
free, 5 % more memory, and nothing at all; measures all of them in one experiment of the lab; and asks what ``freestone
diff`` asks, with limits and without, in every window of so many rounds, none of which share a round. How much is
planted is told by the programs that are measured: the turns that make up 1 % of their time are found by planting many.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from freestone.analysis import difference, gate
from freestone.analysis.score import PEAK_RSS, TIME
from freestone.analysis.sides import Side
from freestone.records import store
from freestone.records.schema import Change, Difference

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
ARCHIVE = REPOSITORY / "build" / "libfreestone.a"
SOUND, SAME = "sound", "same"
WORK = {"work-1": 0.01, "work-2": 0.02, "work-5": 0.05, "work-10": 0.10}
MEMORY = {"memory-5": 0.05}
CALIBRATION_TURNS = 32000
LIMITS = {TIME: 0.03, PEAK_RSS: 0.03}
SUITE = """
title = "programs that do little but allocate: what is planted in malloc and free shows"

[[workload]]
name = "{order}-64-10000"
command = [
    "{workloads}/patterns", "--order", "{order}", "--size", "64", "--live", "10000", "--operations", "8000000",
    "--no-floor",
]
reads = "json"
matrix = { order = ["lifo", "fifo", "interleaved"] }
"""


class Refused(Exception):
    """What is missing, in one line."""


@dataclass(frozen=True)
class Rate:
    """What became of one planted fault in all windows."""

    asked: int
    seen: int
    exceeded: int
    kept: int
    ratio: float
    """Of the whole experiment, without windows."""


def build(name: str, folder: Path, *, turns: int = 0, kib: int = 0) -> Path:
    """A library with a fault in it."""
    target = folder / f"libfreestone-{name}.so"
    archive = folder / "renamed.a"
    if not archive.exists():
        names = folder / "renamed.names"
        names.write_text("malloc planted_malloc\nfree planted_free\n" + _own_names(ARCHIVE), encoding="utf-8")
        _run(["objcopy", f"--redefine-syms={names}", ARCHIVE, archive])
        _run(["ar", "d", archive, "cxx_runtime_linked.c.o"])  # a shared library meets the C++ runtime differently
    _run(
        [
            *(
                "cc",
                "-O2",
                "-fPIC",
                "-shared",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-fno-builtin-malloc",
                "-fno-builtin-free",
            ),
            *("-D_GNU_SOURCE", "-fvisibility=hidden", "-fexceptions", "-I", REPOSITORY / "allocator" / "include"),
            *(f'-DPLANT_NAME="{name}"', f"-DPLANT_TURNS={turns}", f"-DPLANT_KIB={kib}", HERE / "plant.c"),
            *(REPOSITORY / "allocator" / "src" / each for each in ("cxx_runtime_loaded.c", "api_cxx_nothrow.c")),
            *("-Wl,--whole-archive", archive, "-Wl,--no-whole-archive", "-Wl,-Bsymbolic", "-Wl,-z,now,-z,nodelete"),
            *("-Wl,--build-id=sha1", "-pthread", "-ldl", "-o", target),
        ]
    )
    return target


def _own_names(archive: Path) -> str:
    """Lines that take the archive's prefix off the library's own names; what is compiled here is without."""
    words = ["nm", "-g", "--defined-only", "-j", str(archive)]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    prefix = "freestone_own_"
    return "".join(f"{name} {name.removeprefix(prefix)}\n" for name in sorted(set(listed)) if name.startswith(prefix))


def _run(command: Sequence[object]) -> None:
    words = [str(each) for each in command]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise Refused(f"{shlex.join(words[:3])} ... failed: {said[-1] if said else done.returncode}")


def measure(libraries: Mapping[str, Path], rounds: int, results: Path, seed: int, folder: Path) -> Path:
    """One experiment of the lab over these libraries; the results folder."""
    suite = folder / "planted.toml"
    suite.write_text(SUITE, encoding="utf-8")
    results.mkdir(parents=True, exist_ok=True)
    before = set(results.iterdir())
    command = [
        *(sys.executable, "-m", "freestone", "bench", str(suite), "-n", str(rounds), "--seed", str(seed)),
        *("-a", ",".join(f"{name}={path}" for name, path in libraries.items())),
        *("--baseline", SOUND, "--subject", SOUND, "--results", str(results), "--name", "planted"),
    ]
    done = subprocess.run(command, stdout=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Refused(f"freestone bench ended with status {done.returncode}")
    (made,) = set(results.iterdir()) - before
    return made


def calibrate(folder: Path) -> tuple[float, float]:
    """Turns that take as long as the measured programs do, and the programs' peak RSS in KiB: geometric means."""
    libraries = {
        SOUND: build("calibration-0", folder),
        "loaded": build("calibration-1", folder, turns=CALIBRATION_TURNS),
    }
    side = side_of(measure(libraries, 9, folder / "calibration", 1, folder))
    loaded = difference.within(side, SOUND, "loaded")
    peak = [each.before for each in loaded.changes if each.aspect == PEAK_RSS and each.before is not None]
    return CALIBRATION_TURNS / (_mean(loaded, TIME).ratio - 1), statistics.geometric_mean(peak)


def side_of(folder: Path) -> Side:
    """The records of a results folder."""
    return Side(store.read_experiment(folder), store.read_trials(folder).records)


def windows(rounds: int, size: int) -> Iterator[range]:
    """Windows of rounds that share none; what is left over is in none."""
    for start in range(0, rounds - size + 1, size):
        yield range(start, start + size)


def asked(side: Side, name: str, rounds: range) -> Difference:
    """The sound library against another, in some of the rounds."""
    return difference.within(
        Side(side.experiment, [each for each in side.records if each.round in rounds]), SOUND, name
    )


def is_seen(found: Difference, aspect: str) -> bool:
    """Whether the difference accuses the library in the aspect: in the mean or in a workload."""
    return any(each.verdict == "more" and each.aspect == aspect for each in found.changes)


def rate(side: Side, name: str, aspect: str, rounds: int, size: int) -> Rate:
    """One fault in all windows."""
    seen = exceeded = kept = count = 0
    for window in windows(rounds, size):
        found = asked(side, name, window)
        outcome = gate.judge(found, {aspect: LIMITS[aspect]}).outcome
        count += 1
        seen += is_seen(found, aspect)
        exceeded += outcome == "exceeded"
        kept += outcome == "kept"
    return Rate(count, seen, exceeded, kept, _mean(asked(side, name, range(rounds)), aspect).ratio)


def _mean(found: Difference, aspect: str) -> Change:
    return next(each for each in found.changes if each.workload is None and each.aspect == aspect)


def table(rates: Mapping[tuple[str, str], Rate], size: int) -> str:
    """The rates as Markdown."""
    lines = [
        f"| planted | aspect | measured, all rounds | found by diff in {size} rounds | limit of 3 %: exceeded | kept |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for (name, aspect), each in rates.items():
        measured, found = f"{(each.ratio - 1) * 100:+.2f} %", f"{each.seen} of {each.asked}"
        lines.append(f"| {name} | {aspect} | {measured} | {found} | {each.exceeded} | {each.kept} |")
    return "\n".join(lines)


def campaign(rounds: int, size: int, results: Path, seed: int) -> str:
    """Build, measure, ask; the table."""
    if not ARCHIVE.exists():
        raise Refused(f"{ARCHIVE} is not there; run make build")
    for tool in ("objcopy", "ar", "cc"):
        if shutil.which(tool) is None:
            raise Refused(f"{tool} is not here; install binutils and a C compiler")
    with tempfile.TemporaryDirectory(prefix="freestone-planted-") as scratch:
        folder = Path(scratch)
        turns, peak_kib = calibrate(folder)
        libraries = {SOUND: build(SOUND, folder), SAME: build(SAME, folder)}
        for name, share in WORK.items():
            libraries[name] = build(name, folder, turns=round(turns * share))
        for name, share in MEMORY.items():
            libraries[name] = build(name, folder, kib=round(peak_kib * share))
        return told(measure(libraries, rounds, results, seed, folder), size)


def told(folder: Path, size: int) -> str:
    """The table of an experiment that was measured."""
    side = side_of(folder)
    rounds = side.experiment.rounds
    rates = {
        (SAME, TIME): rate(side, SAME, TIME, rounds, size),
        (SAME, PEAK_RSS): rate(side, SAME, PEAK_RSS, rounds, size),
    }
    rates |= {(name, TIME): rate(side, name, TIME, rounds, size) for name in WORK}
    rates |= {(name, PEAK_RSS): rate(side, name, PEAK_RSS, rounds, size) for name in MEMORY}
    return table(rates, size)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=400, help="of the experiment")
    parser.add_argument("--window", type=int, default=20, help="rounds of one question")
    parser.add_argument("--results", type=Path, default=Path("results"), help="the folder that holds all results")
    parser.add_argument("--seed", type=int, default=1, help="of the random order of runs")
    parser.add_argument("--of", type=Path, help="a results folder of such an experiment: ask it again")
    given = parser.parse_args()
    try:
        if given.of is not None:
            print(told(given.of, given.window))
        else:
            print(campaign(given.rounds, given.window, given.results, given.seed))
    except (Refused, store.StoreError) as error:
        print(f"planted: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
