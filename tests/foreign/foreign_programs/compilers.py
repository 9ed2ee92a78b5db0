"""gcc and clang build libfreestone itself, by cmake and ninja: every object has to be the same, byte for byte."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from foreign_programs.program import Program
from foreign_programs.room import Failure, Room

REPOSITORY = Path(__file__).resolve().parents[3]


def build(room: Room, compiler: str, *targets: str) -> None:
    folder = room.folder / "build"
    options = [f"-DCMAKE_C_COMPILER={compiler}", "-DCMAKE_BUILD_TYPE=RelWithDebInfo"]
    room.run(["cmake", "-S", str(REPOSITORY), "-B", str(folder), "-G", "Ninja", *options])
    room.run(["ninja", "-C", str(folder), "-j", "2", *targets])
    found = (path for suffix in ("*.o", "*.so", "*.a") for path in folder.rglob(suffix))
    objects = sorted(path for path in found if path.is_file())  # a link leads to where it will be installed
    if len(objects) < 10:
        raise Failure("hardly anything was built")
    for path in objects:
        room.digest(str(path.relative_to(folder)), path.read_bytes())


def work_gcc(room: Room) -> None:
    build(room, "gcc")


def work_clang(room: Room) -> None:
    # The workloads beside it want an attribute that only gcc has.
    build(room, "clang", "libfreestone.so", "libfreestone.a", "probes/all")


def compiler(name: str, image: str, work: Callable[[Room], None]) -> Program:
    """The compiler ``name``, which compiles in processes of ``image``."""
    return Program(
        name=name,
        what="builds libfreestone by cmake and ninja; every object, archive and library compared",
        package=name,
        needs=(name, "cmake", "ninja"),
        images=("cmake", "ninja", image),
        work=work,
        version=(name, "--version"),
    )


GCC = compiler("gcc", "cc1", work_gcc)
CLANG = compiler("clang", "clang", work_clang)
