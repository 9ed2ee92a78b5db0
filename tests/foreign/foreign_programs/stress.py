"""stress-ng: the stressors of memory, threads and processes, each checking what it wrote."""

from __future__ import annotations

import re

from foreign_programs.program import Program
from foreign_programs.room import Room

STRESSORS = ("malloc", "fork", "pthread", "vfork", "clone", "mlockmany", "resources", "brk")
WORKERS = "2"
LIMITED = ("sh", "-c", 'ulimit -l 8192 && exec "$0" "$@"')
"""As an ordinary user, with little memory that may be locked: as root, a stressor could lock all there is."""


def work(room: Room) -> None:
    for stressor in STRESSORS:
        command = ["stress-ng", f"--{stressor}", WORKERS, "--timeout", f"{room.seconds:.0f}s", "--verify", "--oomable"]
        if stressor == "mlockmany":
            command += ["--pathological", "--mlockmany-procs", "16"]
        done = room.run([*LIMITED, *command, "--temp-path", str(room.folder)], statuses=None)
        said = done.stdout + done.stderr
        # A stressor that the kernel killed for memory says nothing of the allocator; it is told all the same.
        counts = [f"{word}: {count}" for word, count in re.findall(r"(passed|failed|skipped): (\d+)", said.decode())]
        faults = re.findall(r"(?:fail|error):\s+\[\d+\] (.*)", said.decode(errors="replace"))
        room.fact(stressor, f"status {done.status}, {', '.join(counts) or 'no failure told'}, {sorted(set(faults))}")
        if done.status != 0:
            room.complain(f"stress-ng --{stressor}", said)


STRESS = Program(
    name="stress-ng",
    what=f"{', '.join(STRESSORS)}; each with {WORKERS} workers that check what they wrote",
    package="stress-ng",
    needs=("stress-ng",),
    images=("stress-ng",),
    work=work,
    user="nobody",
    version=("stress-ng", "--version"),
)
