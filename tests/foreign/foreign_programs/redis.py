"""redis: its benchmark's every test, then keys of every type, saved, rewritten, killed and loaded again."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

from foreign_programs.program import Program
from foreign_programs.room import Failure, Room, program

CHANGES = 20_000
"""Rounds of changes to keys of every type; the same every time."""
PUSHES = "for n = 1, 200 do redis.call('RPUSH', KEYS[1], n .. ARGV[1]) end"


def commands() -> bytes:
    """Strings, counters, bitmaps, lists, hashes, sets, sorted sets, places, logarithms and streams; small and large."""
    return b"".join(spoken(words) for words in changes())


def spoken(words: list[str]) -> bytes:
    """One command in redis's own protocol; as a plain line it could not be longer than 64 KiB."""
    parts = [f"*{len(words)}\r\n", *(f"${len(word)}\r\n{word}\r\n" for word in words)]
    return "".join(parts).encode()


def changes() -> Iterator[list[str]]:
    for i in range(CHANGES):
        yield ["SET", f"string:{i % 15000}", f"{'v' * (i % 300)}{i}"]
        yield f"RPUSH list:{i % 200} {i} {'x' * (i % 90 + 1)}".split()
        yield f"HSET hash:{i % 300} field{i} {i * 7}".split()
        yield f"SADD set:{i % 100} member{i * 31 % 5000}".split()
        yield f"SADD numbers:{i % 40} {i * 17 % 3000}".split()
        yield f"ZADD sorted:{i % 50} {i % 977} member{i}".split()
        yield f"XADD stream:{i % 30} {i + 1}-1 field{i % 5} {'s' * (i % 120)}{i}".split()
        yield f"PFADD logarithm:{i % 20} {i} {i * 3}".split()
        yield f"SETBIT bitmap:{i % 10} {i * 7 % 60000} {i % 2}".split()
        yield f"INCRBY counter:{i % 70} {i}".split()
        if i % 3 == 0:
            yield f"GEOADD places:{i % 9} {i % 360 - 180} {i % 170 - 85} place{i}".split()
        if i % 5 == 0:
            yield f"APPEND string:{i % 1000} {'y' * (i % 1000 + 1)}".split()
            yield f"LTRIM list:{i % 200} 5 -1".split()
        if i % 7 == 0:
            yield f"HDEL hash:{i % 300} field{i - 300}".split()
            yield f"ZREMRANGEBYRANK sorted:{i % 50} 0 3".split()
            yield f"XTRIM stream:{i % 30} MAXLEN 400".split()
        if i % 11 == 0:
            yield f"DEL string:{i * 13 % 15000} list:{i % 200}".split()
            yield f"UNLINK set:{i % 100}".split()
        if i % 500 == 0:
            yield ["SET", f"large:{i}", "L" * (i * 20)]
            yield ["EVAL", PUSHES, "1", f"scripted:{i}", "z"]
            yield f"SUNIONSTORE union:{i} set:1 set:2 set:3".split()
            yield f"ZUNIONSTORE merged:{i} 2 sorted:1 sorted:2".split()
            yield f"PFMERGE estimate:{i} logarithm:1 logarithm:2".split()
            yield f"SORT list:{i % 200} ALPHA STORE ordered:{i}".split()
    yield ["XGROUP", "CREATE", "stream:1", "readers", "0"]
    yield ["XREADGROUP", "GROUP", "readers", "first", "COUNT", "50", "STREAMS", "stream:1", ">"]


def work(room: Room) -> None:
    socket = room.folder / "s"
    # A snapshot in the middle of everything, an append-only file beside it, threads for input and for freeing.
    options = [
        *["--port", "0", "--unixsocket", str(socket), "--dir", str(room.folder), "--save", "1 1000"],
        *["--appendonly", "yes", "--appendfsync", "no", "--io-threads", "2", "--io-threads-do-reads", "yes"],
        *["--enable-debug-command", "local", "--lazyfree-lazy-user-del", "yes", "--set-max-intset-entries", "64"],
    ]
    server_path, client = program("redis-server"), [program("redis-cli"), "-s", str(socket)]

    load = [program("redis-benchmark"), "-s", str(socket), "-n", "20000", "-c", "30", "-r", "20000", "-q"]

    def ask(*words: str) -> str:
        return room.run([*client, *words]).text

    def ready() -> bool:
        return room.run([*client, "PING"], statuses=None).text == "PONG"

    def settled(field: str) -> None:
        room.wait(lambda: f"{field}:0" in ask("INFO", "persistence"))

    with room.server([server_path, *options], ready, "log") as server:
        tried = room.run([*client, "CONFIG", "SET", "activedefrag", "yes"], statuses=None).text
        room.fact("active defragmentation", tried.splitlines()[0] if tried else "")
        benchmark = room.run([*load, "-d", "200"])
        room.fact("tests of the benchmark", benchmark.stdout.count(b"requests per second"))
        ask("FLUSHALL")
        loaded = room.run([*client, "--pipe"], stdin=commands())
        room.fact("answers", loaded.text.splitlines()[-1])
        room.fact("digest", ask("DEBUG", "DIGEST"))
        room.fact("keys", ask("DBSIZE"))
        for field in ("rdb_bgsave_in_progress", "aof_rewrite_in_progress", "aof_rewrite_scheduled"):
            settled(field)
        room.fact("save", ask("SAVE"))
        ask("BGREWRITEAOF")
        room.run([*load, "-d", "100", "-t", "set,lpush"])
        ask("EVAL", "for _, k in ipairs(redis.call('KEYS', 'key:*')) do redis.call('DEL', k) end", "0")
        ask("DEL", "mylist", "counter:__rand_int__")
        settled("aof_rewrite_in_progress")
        ask("BGSAVE")
        settled("rdb_bgsave_in_progress")
        told = ask("INFO", "persistence")
        room.fact("snapshots", [line for line in told.splitlines() if line.endswith(("status:ok", "status:err"))])
        room.fact("digest after rewriting", ask("DEBUG", "DIGEST"))
        ask("DEBUG", "RELOAD")
        room.fact("digest after a reload", ask("DEBUG", "DIGEST"))
        server.send_signal(signal.SIGKILL)
        server.wait()
    socket.unlink(missing_ok=True)
    with room.server([server_path, *options], ready, "log") as server:
        room.fact("digest after a kill", ask("DEBUG", "DIGEST"))
        room.run([*client, "SHUTDOWN", "SAVE"], statuses=None)
        room.fact("shutdown", server.wait(60))
    with room.server([server_path, *options], ready, "log") as server:
        room.fact("digest after a shutdown", ask("DEBUG", "DIGEST"))
        ask("FLUSHALL", "ASYNC")
        room.fact("keys at the end", ask("DBSIZE"))
        room.stop(server, signal.SIGTERM, "end")
    log = (room.folder / "log").read_text(errors="replace")
    if "crashed by signal" in log or "REDIS BUG REPORT" in log:
        room.complain("redis-server", log.encode())
        raise Failure("redis-server crashed")


REDIS = Program(
    name="redis",
    what="redis-benchmark's every test; keys of all types; snapshot, AOF rewrite, reload, kill, shutdown; DEBUG DIGEST",
    package="redis-server and redis-tools",
    needs=("redis-server", "redis-cli", "redis-benchmark"),
    images=tuple(sorted({Path(f"/usr/bin/{name}").resolve().name for name in ("redis-server", "redis-cli")})),
    work=work,
    version=("redis-server", "--version"),
)
