"""UCX: a cache of registered memory that learns by hooks which pages go back to the kernel or move."""

from __future__ import annotations

from pathlib import Path

from foreign_programs.program import ENVIRONMENT, Program, of_package
from foreign_programs.room import Room, program

SOURCE = Path(__file__).with_name("scripts") / "registered.c"


def work(room: Room) -> None:
    room.run([program("cc"), "-O1", "-o", "registered", str(SOURCE), "-lucm", "-lucs", "-lpthread"])
    # If libc is preloaded, as it is in the arm of glibc, UCX calls its own malloc from within and waits for itself.
    preload = ":".join(path for path in room.preload.split(":") if "/libc.so" not in path)
    # Jumps in libc's code, and other addresses in the tables by which objects call each other.
    for hooks in ("bistro", "reloc"):
        done = room.run(["env", f"LD_PRELOAD={preload}", f"UCX_MEM_MMAP_HOOK_MODE={hooks}", "./registered"])
        room.fact(f"hooks by {hooks}", done.text)


UCX = Program(
    name="ucx",
    what="blocks of 9 kB to 150 MiB registered, freed, resized and taken again under memory hooks; stale pages counted",
    package="libucx-dev and gcc",
    needs=("cc", "/usr/include/ucm/api/ucm.h"),
    images=("registered",),
    work=work,
    version=of_package("libucx0"),
    modes=ENVIRONMENT,
)
