"""Open MPI over shared memory: four ranks exchange blocks that they allocate, grow and free between messages."""

from __future__ import annotations

from pathlib import Path

from foreign_programs.program import ENVIRONMENT, Program
from foreign_programs.room import Room, program

SOURCE = Path(__file__).with_name("scripts") / "ring.c"


def work(room: Room) -> None:
    room.run([program("mpicc"), "-O1", "-o", "ring", str(SOURCE)])
    # All ranks on this machine, however few CPUs it has; messages through shared memory and by the kernel's copy (CMA).
    launch = [program("mpirun"), "--allow-run-as-root", "--oversubscribe", "-np", "4", "--mca", "btl", "self,vader"]
    for single_copy in ("none", "cma"):
        done = room.run([*launch, "--mca", "btl_vader_single_copy_mechanism", single_copy, "./ring"])
        room.fact(f"sums, single copy by {single_copy}", done.text)


MPI = Program(
    name="openmpi",
    what="a ring of four ranks, blocks of 16 bytes to 4 MiB grown and freed between messages; sums compared",
    package="openmpi-bin and libopenmpi-dev",
    needs=("mpirun", "mpicc"),
    images=("ring",),
    work=work,
    version=("mpirun", "--version"),
    modes=ENVIRONMENT,
)
