"""Programs whose clock a preload replaces: one that stands still, one that begins elsewhere, one that runs away."""

from __future__ import annotations

import signal
from pathlib import Path

from foreign_programs.program import ENVIRONMENT, Program, newest
from foreign_programs.redis import commands
from foreign_programs.room import Failure, Room, program

LIBRARY = "/usr/lib/*/faketime/libfaketimeMT.so.1"
SCRIPT = Path(__file__).with_name("scripts") / "clocked.py"
CLOCKS = {"still": "2020-01-01 00:00:00", "elsewhere": "@2031-01-01 00:00:00", "fast": "@2040-01-01 00:00:00 x50"}


def under(*command: str) -> list[str]:
    """The clock stands before the allocator; behind libc, which is preloaded in the other arm, it would find none."""
    library = newest(LIBRARY)
    if library is None:
        raise Failure("libfaketime is not installed")
    return ["sh", "-c", 'export LD_PRELOAD="$0:$LD_PRELOAD"; exec "$@"', library, *command]


def work(room: Room) -> None:
    for name, clock in CLOCKS.items():
        extra = {"FAKETIME": clock, "PYTHONMALLOC": "malloc"}
        room.fact(f"python, {name}", room.run(under("/usr/bin/python3", "-I", str(SCRIPT)), extra=extra).text)
    serve(room)


def serve(room: Room) -> None:
    """A server that saves by a fork, by a clock that runs away."""
    socket = room.folder / "s"
    client = [program("redis-cli"), "-s", str(socket)]
    options = ["--port", "0", "--unixsocket", str(socket), "--dir", str(room.folder), "--save", ""]
    extra = {"FAKETIME": CLOCKS["fast"]}

    def ask(*words: str) -> str:
        return room.run([*client, *words]).text

    def ready() -> bool:
        return room.run([*client, "PING"], statuses=None).text == "PONG"

    command = under(program("redis-server"), *options, "--enable-debug-command", "local")
    with room.server(command, ready, "log", extra) as server:
        loaded = room.run([*client, "--pipe"], stdin=commands())
        room.fact("redis, answers", loaded.text.splitlines()[-1])
        room.fact("redis, save", ask("SAVE"))
        ask("BGSAVE")
        room.wait(lambda: "rdb_bgsave_in_progress:0" in ask("INFO", "persistence"))
        room.fact("redis, snapshot", "rdb_last_bgsave_status:ok" in ask("INFO", "persistence"))
        room.fact("redis, keys", ask("DBSIZE"))
        ask("FLUSHALL", "ASYNC")
        room.stop(server, signal.SIGTERM, "redis, end")


FAKETIME = Program(
    name="faketime",
    what="Python's threads and forks by a clock that stands still, begins elsewhere or is fast; redis by a fast one",
    package="faketime, python3 and redis-server",
    needs=(LIBRARY, "/usr/bin/python3", "redis-server", "redis-cli"),
    images=tuple(Path(f"/usr/bin/{name}").resolve().name for name in ("python3", "redis-server")),
    work=work,
    version=("/usr/bin/faketime", "--version"),
    modes=ENVIRONMENT,
)
