"""node: workers, buffers, streams, timers and child processes, by a script and by node's own test runner."""

from __future__ import annotations

from pathlib import Path

from foreign_programs.program import Program
from foreign_programs.room import Room

SCRIPTS = Path(__file__).parent / "scripts"


def work(room: Room) -> None:
    for run in range(3):
        done = room.run(["node", "--expose-gc", str(SCRIPTS / "work.mjs")])
        room.fact(f"what run {run} said", " ".join(done.text.split()))
    done = room.run(["node", "--test", str(SCRIPTS / "work.test.mjs")], statuses=None)
    counts = [line for line in done.text.splitlines() if line.startswith(("# tests", "# pass", "# fail"))]
    room.fact("tests", f"status {done.status}, {', '.join(counts)}")
    if done.status != 0:
        room.complain("node --test", done.stdout, done.stderr)


NODE = Program(
    name="node",
    what="a script of workers, buffers, compression and child processes, three times; eight tests by its own runner",
    package="nodejs",
    needs=("node",),
    images=("node",),
    work=work,
    version=("node", "--version"),
)
