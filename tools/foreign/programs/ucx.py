"""UCX: a cache of registered memory that learns by hooks which pages go back to the kernel or move."""

from __future__ import annotations

from pathlib import Path

from foreign.program import ENVIRONMENT, Program
from foreign.room import Room, program

SOURCE = Path(__file__).with_name("scripts") / "registered.c"


def work(room: Room) -> None:
    room.run([program("cc"), "-O1", "-o", "registered", str(SOURCE), "-lucm", "-lucs", "-lpthread"])
    # Jumps in libc's code, and other addresses in the tables by which objects call each other.
    for hooks in ("bistro", "reloc"):
        done = room.run(["./registered"], extra={"UCX_MEM_MMAP_HOOK_MODE": hooks})
        room.fact(f"hooks by {hooks}", done.text)


UCX = Program(
    name="ucx",
    what="blocks of 9 kB to 150 MiB registered, freed, resized and taken again under memory hooks; stale pages counted",
    package="libucx-dev and gcc",
    needs=("cc", "/usr/include/ucm/api/ucm.h"),
    images=("registered",),
    work=work,
    version=("ucx_info", "-v"),
    modes=ENVIRONMENT,
)
