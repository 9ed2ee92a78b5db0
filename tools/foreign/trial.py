"""One program, once, under one allocator: in a process of its own, which takes all that it started with it."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foreign import proof
from foreign.catalogue import PROGRAMS
from foreign.comparison import END, Outcome
from foreign.program import Program
from foreign.room import Failure, Room

TOOLS = Path(__file__).resolve().parents[1]
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER


@dataclass(frozen=True)
class Arm:
    """An allocator that programs are put under: the file that has to serve them, and FREESTONE_OPTIONS for it."""

    name: str
    library: Path
    options: str = ""


def conduct(program: Program, arm: Arm, scratch: Path, notes_preload: Path, seconds: float) -> Outcome:
    """Runs ``program`` in ``scratch/room``, the same place for every arm: paths get into what programs write."""
    room, notes = scratch / "room", scratch / "notes"
    shutil.rmtree(room, ignore_errors=True)
    room.mkdir()
    notes.write_bytes(b"")
    room.chmod(0o777)
    notes.chmod(0o666)
    order = {
        "program": program.name,
        "folder": str(room),
        "preload": f"{notes_preload}:{arm.library}",
        "options": arm.options,
        "notes": str(notes),
        "seconds": seconds,
    }
    start = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "foreign.trial", json.dumps(order)],
        env={**os.environ, "PYTHONPATH": str(TOOLS)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    limit_s = program.limit_s + 20 * seconds
    try:
        stdout, stderr = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        # Asked first: it ends what it started.
        process.terminate()
        stdout, stderr = process.communicate()
    wall_s = time.monotonic() - start
    if process.returncode == 128 + signal.SIGTERM:
        told: dict[str, Any] = {"facts": {END: "did not come within the limit"}, "peak_kib": 0, "complaints": []}
    elif process.returncode != 0:
        last = stderr.decode(errors="replace").strip().splitlines()[-1:]
        return Outcome(void=f"{program.name}: the trial itself failed: {last}", wall_s=wall_s)
    else:
        told = json.loads(stdout)
    void = proof.lack(notes.read_text().splitlines(), str(arm.library), program.images)
    # A program that failed early cannot have shown all its images; that it failed is the finding.
    if void is not None and END in told["facts"] and "without being seen" in void:
        void = None
    shutil.rmtree(room, ignore_errors=True)
    return Outcome(
        facts=told["facts"],
        void=f"{void} ({program.name}, {arm.name})" if void else None,
        wall_s=wall_s,
        peak_kib=told["peak_kib"],
        complaints=told["complaints"],
    )


def main(order: str) -> None:
    """The process of one trial."""
    told = json.loads(order)
    program = PROGRAMS[told["program"]]
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    room = Room(
        Path(told["folder"]),
        told["preload"],
        Path(told["notes"]),
        seconds=told["seconds"],
        user=program.user,
        options=told["options"],
    )
    try:
        program.work(room)
    except Failure as failure:
        room.fact(END, failure)
    finally:
        end_descendants()
    peak_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(json.dumps({"facts": room.facts, "complaints": room.complaints, "peak_kib": peak_kib}))


def end_descendants() -> None:
    """Ends whatever this process started and what was left to it by those; it is the reaper of them all."""
    while True:
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        if not children:
            return
        for child in children:
            os.waitpid(int(child), 0)


if __name__ == "__main__":
    main(sys.argv[1])
