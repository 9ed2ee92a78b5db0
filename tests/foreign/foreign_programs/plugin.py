"""A plugin that brings jemalloc: the way it is opened decides which malloc it calls; it keeps its blocks to itself."""

from __future__ import annotations

from pathlib import Path

from foreign_programs.program import ENVIRONMENT, Program, newest, of_package
from foreign_programs.room import Failure, Room, program

SCRIPTS = Path(__file__).with_name("scripts")
JEMALLOC = "/usr/lib/*/libjemalloc.so.2"
STATIC_TLS = {"GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=32768"}
"""jemalloc's thread-local data are static: a running program has room for so much only if it is asked for."""


def work(room: Room) -> None:
    library = newest(JEMALLOC)
    if library is None:
        raise Failure("jemalloc is not installed")
    build = [program("cc"), "-O1", "-fPIC"]
    room.run([*build, "-shared", "-o", "plugin.so", str(SCRIPTS / "plugin.c"), library, "-Wl,--no-as-needed"])
    room.run([*build, "-o", "host", str(SCRIPTS / "plugin_host.c"), "-ldl", "-lpthread"])
    for how in ("local", "global", "deepbind"):
        room.fact(f"opened {how}", room.run(["./host", "./plugin.so", how], extra=STATIC_TLS).text)


PLUGIN = Program(
    name="jemalloc-plugin",
    what="a plugin linked to jemalloc, opened locally, globally and with RTLD_DEEPBIND, beside threads; sums compared",
    package="libjemalloc2 and gcc",
    needs=("cc", JEMALLOC),
    images=("host",),
    work=work,
    version=of_package("libjemalloc2"),
    modes=ENVIRONMENT,
)
