"""Foreign programs' own work under glibc and under libfreestone: whatever differs is a defect."""

from __future__ import annotations

import argparse
import ctypes
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from conformance.building import BUILT
from conformance.columns import Column
from conformance.comparison import END, Outcome, Verdict, compare, time_ratio
from conformance.markdown import cell, table
from conformance.suite import Refused, Suite
from foreign_programs import proof
from foreign_programs.catalogue import PROGRAMS
from foreign_programs.program import Program
from foreign_programs.room import Failure, Room
from freestone.allocators import discovery

AGAIN = 3
"""Trials of each arm if the first two differ: a program that varies by itself shows it by then."""
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER


@dataclass(frozen=True)
class Work:
    """A program in one of its modes: FREESTONE_OPTIONS."""

    program: Program
    options: str = ""

    def __str__(self) -> str:
        return f"{self.program.name} ({self.options})" if self.options else self.program.name


@dataclass(frozen=True)
class Row:
    """The trials of a program; ``skipped`` is the reason if it was not run."""

    glibc: Sequence[Outcome] = ()
    freestone: Sequence[Outcome] = ()
    verdict: Verdict = field(default_factory=Verdict)
    skipped: str | None = None


class Foreign(Suite[Work, Row]):
    """Every foreign program of this machine under glibc and under libfreestone; 1: a difference or a void result."""

    name = "foreign"
    shown = ("table", "count")

    def __init__(self) -> None:
        self.scratch = Path()
        self.preload = Path()
        self.seconds = 3.0

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--whole", action="store_true", help="CPython's tests whole, not a choice; an hour or more")
        parser.add_argument("--seconds", type=float, default=3.0, help="how long a load that goes by time lasts")

    def choose(self, told: argparse.Namespace) -> Sequence[Work]:
        asked = told.only.split()
        if strangers := set(asked) - set(PROGRAMS):
            raise Refused(f"there is no {', '.join(sorted(strangers))} among {', '.join(PROGRAMS)}")
        left_out = "cpython" if told.whole else "cpython-whole"
        wanted = asked or [name for name in PROGRAMS if name != left_out]
        return [Work(one, options) for one in PROGRAMS.values() if one.name in wanted for options in one.modes]

    def prepare(self, cases: Sequence[Work], told: argparse.Namespace, until: ExitStack) -> None:
        compiler = shutil.which(os.environ.get("CC", "cc"))
        if compiler is None or glibc() is None:
            raise Refused("a C compiler and glibc are needed to prove who serves a program")
        self.seconds = told.seconds
        self.scratch = Path(until.enter_context(tempfile.TemporaryDirectory(prefix="fs-"))).resolve()
        self.scratch.chmod(0o755)
        self.preload = proof.build_preload(compiler, self.scratch / "note_provider.so")

    def columns(self, told: argparse.Namespace) -> Sequence[Column]:
        library = shutil.copy(told.allocators or BUILT / "libfreestone.so", self.scratch / "libfreestone.so")
        return [Column(discovery.configuration_for(discovery.from_path(str(library))))]

    def title(self, case: Work) -> str:
        return str(case)

    def told(self, answer: Row) -> str:
        return found(answer)

    def answer(self, case: Work, column: Column) -> Row:
        """Run a program under both allocators, and again if they differ."""
        if missing := case.program.missing():
            return Row(skipped=f"{', '.join(missing)} is not here (Debian: {case.program.package})")
        libraries = [glibc(), Path(column.configuration.allocator.file or "")]
        sides: tuple[list[Outcome], list[Outcome]] = ([], [])
        verdict = compare(*sides)
        for _ in range(AGAIN):
            for library, side in zip(libraries, sides, strict=True):
                assert library is not None
                side.append(conduct(case, library, self.scratch, self.preload, self.seconds))
                print(f"foreign: {case} under {library.name}: {side[-1].wall_s:.0f} s", file=sys.stderr, flush=True)
                for complaint in side[-1].complaints:
                    print(complaint, file=sys.stderr, flush=True)
            verdict = compare(*sides)
            if verdict.void is not None or (verdict.agrees and not verdict.unsteady):
                break
        return Row(*sides, verdict)

    def parts(
        self, cases: Sequence[Work], columns: Sequence[Column], answers: Mapping[tuple[Work, str], Row]
    ) -> dict[str, str]:
        rows = [(case, row) for (case, _), row in answers.items()]
        ran = [row for _, row in rows if row.skipped is None]
        passed = sum(row.verdict.agrees for row in ran)
        count = f"{passed} passed, {len(ran) - passed} failed, {len(rows) - len(ran)} skipped"
        return {"table": markdown(rows), "count": count}

    def failed(self, answers: Mapping[tuple[Work, str], Row]) -> bool:
        return any(row.skipped is None and not row.verdict.agrees for row in answers.values())


def glibc() -> Path | None:
    """Return the C library itself, to be preloaded: a program that brings another malloc is not to run under that."""
    maps = Path("/proc/self/maps").read_text()
    return next((Path(line.split()[-1]).resolve() for line in maps.splitlines() if "/libc.so.6" in line), None)


# --- a trial: in a process of its own, which takes all that it started with it ----------------------------------------


def conduct(work: Work, library: Path, scratch: Path, notes_preload: Path, seconds: float) -> Outcome:
    """Run a program in ``scratch/room``, the same place under each library: paths get into what programs write."""
    program, folder, notes = work.program, scratch / "room", scratch / "notes"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    notes.write_bytes(b"")
    folder.chmod(0o777)
    notes.chmod(0o666)
    preload = f"{notes_preload}:{library}"
    room = Room(folder, preload, notes, seconds=seconds, user=program.user, options=work.options)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    start = time.monotonic()
    process = context.Process(target=_work, args=(program, room, sender))
    process.start()
    sender.close()
    told: dict[str, Any] = {}
    try:
        if receiver.poll(program.limit_s + 20 * seconds):
            told = receiver.recv()
        else:
            told = {"facts": {END: "did not come within the limit"}}
            process.terminate()  # asked first: it ends what it started
    except EOFError:
        told = {"void": "the trial itself failed"}
    process.join()
    wall_s = time.monotonic() - start
    facts, void = told.get("facts", {}), told.get("void")
    if void is None:
        void = proof.lack(notes.read_text().splitlines(), str(library), program.images)
        # A program that failed early cannot have shown all its images; that it failed is the finding.
        if void is not None and END in facts and "without being seen" in void:
            void = None
    shutil.rmtree(folder, ignore_errors=True)
    return Outcome(
        facts=facts,
        void=f"{void} ({program.name}, {library.name})" if void else None,
        wall_s=wall_s,
        peak_kib=told.get("peak_kib", 0),
        complaints=told.get("complaints", []),
    )


def _work(program: Program, room: Room, result: Connection) -> None:
    """Do a program's work, as the process of one trial."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        program.work(room)
    except Failure as failure:
        room.fact(END, failure)
    finally:
        end_descendants()
    peak_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    result.send({"facts": room.facts, "complaints": room.complaints, "peak_kib": peak_kib})


def end_descendants() -> None:
    """End whatever this process started and what was left to it by those; it is the reaper of them all."""
    while children := Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        for child in children:
            os.waitpid(int(child), 0)


# --- the table --------------------------------------------------------------------------------------------------------


def told(outcomes: Sequence[Outcome]) -> str:
    """Return facts and largest process of the last trial."""
    return f"{len(outcomes[-1].facts)} facts, {outcomes[-1].peak_kib / 1024:.0f} MiB" if outcomes else "-"


def found(row: Row) -> str:
    """Return the difference, as the table has it."""
    if row.skipped is not None:
        return f"not run: {row.skipped}"
    if row.verdict.void is not None:
        return f"void: {row.verdict.void}"
    unsteady = f"; unsteady under glibc too: {'; '.join(row.verdict.unsteady)}" if row.verdict.unsteady else ""
    return ("; ".join((*row.verdict.differences, *row.verdict.to_look_at)) or "none") + unsteady


def markdown(rows: Sequence[tuple[Work, Row]]) -> str:
    """Return rows as a table; peak memory and time are for information, unless time is far beyond noise."""
    head = "program|what it does|under glibc|under libfreestone|time (few runs, busy machine)|difference"
    lines = [head.split("|")]
    for work, row in rows:
        ratio = time_ratio(row.glibc, row.freestone)
        times, version = f"{ratio:.2f} x" if ratio else "-", "" if row.skipped else work.program.told_version()
        cells = [f"{work} {version}", work.program.what, told(row.glibc), told(row.freestone), times, found(row)]
        lines.append([cell(text) for text in cells])
    return table(lines)
