"""``python -m foreign``: every foreign program of this machine under glibc and under libfreestone, and the table.

Exit status: 0 no difference, 1 a difference or a void result, 2 bad usage.
"""

from __future__ import annotations

import argparse
import datetime
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from foreign import proof
from foreign.catalogue import PROGRAMS
from foreign.comparison import Outcome, compare, time_ratio
from foreign.page import with_table
from foreign.program import Program
from foreign.table import Row, markdown
from foreign.trial import Arm, conduct

REPOSITORY = Path(__file__).resolve().parents[2]
AGAIN = 3
"""Trials of each arm where the first two differ: what a program does differently by itself shows by then."""


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="foreign", description=__doc__)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"of {', '.join(PROGRAMS)}; all of them without")
    parser.add_argument("--whole", action="store_true", help="CPython's tests whole, not a choice; an hour or more")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long a load that goes by time lasts")
    parser.add_argument("--library", type=Path, default=REPOSITORY / "build" / "libfreestone.so")
    parser.add_argument("--page", type=Path, help="put the table into this page")
    told = parser.parse_args(words)
    left_out = "cpython" if told.whole else "cpython-whole"
    wanted = told.programs or [name for name in PROGRAMS if name != left_out]
    strangers = set(told.programs) - set(PROGRAMS)
    if strangers:
        print(f"foreign: there is no {', '.join(sorted(strangers))} among {', '.join(PROGRAMS)}", file=sys.stderr)
        return 2
    compiler = shutil.which(os.environ.get("CC", "cc"))
    libc = glibc()
    if compiler is None or libc is None:
        print("foreign: a C compiler and glibc are needed to prove who serves a program", file=sys.stderr)
        return 2
    rows = []
    with tempfile.TemporaryDirectory(prefix="fs-") as folder:
        scratch = Path(folder).resolve()
        scratch.chmod(0o755)
        preload = proof.build_preload(compiler, scratch / "note_provider.so")
        library = Path(shutil.copy(told.library, scratch))
        for program in PROGRAMS.values():
            if program.name in wanted:
                for options in program.modes:
                    arms = (Arm("glibc", libc), Arm("libfreestone", library, options))
                    rows.append(row_of(program, arms, scratch, preload, told.seconds))
    table = markdown(rows)
    print(table)
    if told.page:
        told.page.write_text(with_table(told.page.read_text(encoding="utf-8"), caption(), table), encoding="utf-8")
    ran = [row for row in rows if row.skipped is None]
    failed = [row.name for row in ran if not row.verdict.agrees]
    print(f"{len(ran) - len(failed)} passed, {len(failed)} failed, {len(rows) - len(ran)} skipped")
    return 1 if failed else 0


def row_of(program: Program, arms: tuple[Arm, Arm], scratch: Path, preload: Path, seconds: float) -> Row:
    """Runs one program under both, again where they differ, and says what is found."""
    title = f"{program.name} ({arms[1].options})" if arms[1].options else program.name
    missing = program.missing()
    if missing:
        reason = f"{', '.join(missing)} is not here (Debian: {program.package})"
        print(f"foreign: {title} is left out: {reason}", flush=True)
        return Row(title, "", program.what, skipped=reason)
    sides: tuple[list[Outcome], list[Outcome]] = ([], [])
    verdict = compare(*sides)
    for _ in range(AGAIN):
        for arm, side in zip(arms, sides, strict=True):
            outcome = conduct(program, arm, scratch, preload, seconds)
            side.append(outcome)
            print(f"foreign: {title} under {arm.name}: {outcome.wall_s:.0f} s", flush=True)
            for complaint in outcome.complaints:
                print(complaint, file=sys.stderr, flush=True)
        verdict = compare(*sides)
        if verdict.agrees and not verdict.unsteady:
            break
        for line in (*verdict.differences, *verdict.unsteady, *([verdict.void] if verdict.void else [])):
            print(f"foreign: {title}: {line}", flush=True)
        if verdict.void is not None:
            break
    print(f"foreign: {title}: {time_ratio(*sides):.2f} times the time under glibc", flush=True)
    for line in verdict.to_look_at:
        print(f"foreign: {title}: {line}", flush=True)
    return Row(title, program.told_version(), program.what, *sides, verdict)


def glibc() -> Path | None:
    """The C library itself, to be preloaded: a program that brings another malloc along is not to run under that."""
    maps = Path("/proc/self/maps").read_text()
    return next((Path(line.split()[-1]).resolve() for line in maps.splitlines() if "/libc.so.6" in line), None)


def caption() -> str:
    """Machine, day and commit of a table."""
    commit = subprocess.run(
        ["git", "-C", str(REPOSITORY), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    processor = models[0].partition(":")[2].strip() if models else os.uname().machine
    day = datetime.date.today().isoformat()
    return f"{processor}, {os.cpu_count()} cores, Linux {os.uname().release}; {day}; commit {commit}."


if __name__ == "__main__":
    sys.exit(main())
