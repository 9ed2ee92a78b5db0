"""Every bug under every allocator: reported, met by a guarded page, refused, harmless, crashed, or never seen.

Usage: ``PYTHONPATH=tools .venv/bin/python -m misuses [--only FAMILY] [--allocators freestone,glibc] [--page FILE]``

``--page`` writes the tables into a page of Markdown; only a run of all bugs under all allocators may. Exit status 2:
wrong use, or a program that cannot be compiled; 1: a program did not come as far as its bug.
"""

from __future__ import annotations

import argparse
import datetime
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path

from freestone.allocators.errors import AllocatorError
from freestone.records.schema import Configuration
from misuses import cases, columns, page, picture
from misuses.cases import SIZES, Case
from misuses.columns import Column
from misuses.judging import Evidence, Stop, judge, read

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = REPOSITORY / "tests" / "misuses"
BUILT = REPOSITORY / "build" / "misuses"
LIMIT_S = 30.0
"""For who waits for ever; who is busy for ever is ended by the program's own limit."""
RUNS = 10
AGREEING = 3
"""So many runs suffice where they agree and nothing is drawn by chance."""
AT_A_TIME = 4
"""Programs: most of the time goes into starting and ending them."""
NO_BUG = [Case("no bug", size, ("nobug", size)) for size in SIZES]
# The compiler may neither see the bug nor know what malloc is.
OPTIONS = ("-std=c++17", "-O1", "-g", "-fno-builtin", "-Wall", "-Wextra", "-Wno-free-nonheap-object", "-pthread")


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="misuses", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", default="", help="bugs that have this text in 'family: program arguments'")
    parser.add_argument("--allocators", default="", help="names or libraries, with commas between")
    parser.add_argument("--page", type=Path)
    told = parser.parse_args(words)
    if told.page and (told.only or told.allocators):
        print("misuses: a page is written by a run of all bugs under all allocators only", file=sys.stderr)
        return 2
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    chosen = cases.choose(told.only)
    if not chosen:
        families = " | ".join(dict.fromkeys(case.family for case in cases.every()))
        print(f"misuses: no bug has '{told.only}' in its name; families: {families}", file=sys.stderr)
        return 2
    try:
        build()
        found = columns.find(told.allocators)
    except (AllocatorError, subprocess.CalledProcessError) as error:
        print(f"misuses: {error}", file=sys.stderr)
        return 2
    answers: dict[tuple[Case, str], tuple[Stop, ...]] = {}
    for column in found:
        print(f"misuses: {column.name} ...", file=sys.stderr, flush=True)
        for case in NO_BUG:
            if answer(case, column.configuration) is not Stop.HARMLESS:
                print(f"misuses: {column.name} does not serve a program without a bug", file=sys.stderr)
                return 2
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            for case, stops in zip(chosen, pool.map(_answers, chosen, repeat(column)), strict=True):
                answers[case, column.name] = stops
    names = [column.name for column in found]
    print(page.families(chosen, names, answers))
    print(page.each(chosen, names, answers))
    print(page.legend())
    if told.page:
        picture.save(chosen, found, answers, REPOSITORY / "docs" / "images")
        told.page.write_text(page.text(chosen, found, answers, day=datetime.date.today().isoformat()), encoding="utf-8")
    return int(any(Stop.INVALID in stops for stops in answers.values()))


def build() -> None:
    """Compile the programs whose sources have changed."""
    BUILT.mkdir(parents=True, exist_ok=True)
    newest = (SOURCES / "misuse.h").stat().st_mtime
    for source in sorted(SOURCES.glob("*.cpp")):
        output = BUILT / source.stem
        if not output.exists() or output.stat().st_mtime < max(newest, source.stat().st_mtime):
            subprocess.run(["g++", *OPTIONS, str(source), "-o", str(output)], check=True)


def _answers(case: Case, column: Column) -> tuple[Stop, ...]:
    stops: list[Stop] = []
    while len(stops) < RUNS:
        stops.append(answer(case, column.configuration))
        if len(stops) == AGREEING and len(set(stops)) == 1 and not column.by_chance:
            break
    return tuple(stops)


def answer(case: Case, configuration: Configuration) -> Stop:
    """What becomes of the bug in one run."""
    return judge(gather(case, configuration), frees=case.frees)


def gather(case: Case, configuration: Configuration) -> Evidence:
    """Run the program once."""
    # Settings of allocators, the user's own.
    strange = ("LD_", "MALLOC_", "GLIBC_", "MIMALLOC_", "SCUDO_", "TCMALLOC_", "FREESTONE_OPTIONS")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(strange)}
    environment |= {"LC_ALL": "C", **configuration.environment}
    environment["LD_PRELOAD"] = ":".join(configuration.allocator.preload)
    with subprocess.Popen(
        [str(BUILT / case.words[0]), *case.words[1:]],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        status: int | None
        try:
            output, errors = process.communicate(timeout=LIMIT_S)
            status = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
            status = None
    return read(status, output, errors)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
