"""redis-server and rocksdb hold the same data after their benchmarks."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

STARTING_S = 30.0


def redis_commands() -> bytes:
    """Keys of every type, some overwritten, some longer, some deleted; the same every time. `make foreign` has more."""
    lines = []
    for i in range(6000):
        lines.append(f"SET string:{i % 4500} {'v' * (i % 300)}{i}")
        lines.append(f"RPUSH list:{i % 200} {i} {'x' * (i % 90 + 1)}")
        lines.append(f"HSET hash:{i % 300} field{i} {i * 7}")
        lines.append(f"SADD set:{i % 100} member{i * 31 % 5000}")
        lines.append(f"ZADD sorted:{i % 50} {i % 977} member{i}")
        if i % 11 == 0:
            lines.append(f"DEL string:{i * 13 % 4500} list:{i % 200}")
        if i % 5 == 0:
            lines.append(f"APPEND string:{i % 1000} {'y' * (i % 1000 + 1)}")
    return ("\r\n".join(lines) + "\r\n").encode()


def wait_for_socket(server: subprocess.Popen[bytes], socket: Path) -> None:
    end = time.monotonic() + STARTING_S
    while not socket.exists():
        assert server.poll() is None, f"redis-server ended with {server.returncode}"
        assert time.monotonic() < end, f"redis-server does not answer after {STARTING_S:.0f} s"
        time.sleep(0.05)


def test_redis(bench: Any, program: Callable[..., str]) -> None:
    server_path = program("redis-server")
    client = program("redis-cli", "redis-tools")
    benchmark = program("redis-benchmark", "redis-tools")
    commands = redis_commands()

    def work(folder: Path, served: bool) -> Any:
        socket = folder / "redis.sock"
        options = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--enable-debug-command", "local"]
        with open(folder / "log", "wb") as log:
            server = subprocess.Popen(
                [server_path, *options, "--dir", str(folder), "--io-threads", "2"],
                cwd=folder,
                env=bench.environment(folder, served=served, extra={}),
                stdout=log,
                stderr=log,
            )
        try:
            wait_for_socket(server, socket)
            speak = [client, "-s", str(socket)]
            load = [benchmark, "-s", str(socket), "-n", "2000", "-c", "20", "-r", "2000", "-d", "200", "--csv"]
            bench.one([*load, "-t", "set,get,lpush,rpop,sadd,hset,zadd,lrange_100"], folder, served=served)
            bench.one([*speak, "FLUSHALL"], folder, served=served)
            loaded = bench.one([*speak, "--pipe"], folder, served=served, stdin=commands)
            assert b"errors: 0" in loaded.stdout, loaded.stdout
            bench.one([*speak, "DEBUG", "RELOAD"], folder, served=served)
            said = bench.one([*speak, "DEBUG", "DIGEST"], folder, served=served)
            # A snapshot forks the server while its other threads live.
            bench.one([*speak, "BGSAVE"], folder, served=served)
            info = b""
            end = time.monotonic() + STARTING_S
            while b"rdb_bgsave_in_progress:0" not in info:
                assert time.monotonic() < end, "the snapshot does not end"
                info = bench.one([*speak, "INFO", "persistence"], folder, served=served).stdout
            assert b"rdb_last_bgsave_status:ok" in info
        finally:
            server.terminate()
            server.wait(STARTING_S)
        assert server.returncode == 0, (folder / "log").read_text(errors="replace")[-2000:]
        return said

    images = [Path(path).resolve().name for path in (server_path, client, benchmark)]
    system, served = bench.both(work, images)
    assert re.fullmatch(rb"[0-9a-f]{40}\s*", system.stdout), system.stdout
    assert served.stdout == system.stdout


@pytest.mark.long
def test_rocksdb(bench: Any, program: Callable[..., str]) -> None:
    db_bench = program("db_bench", "rocksdb-tools")
    benchmarks = "fillseq,fillrandom,overwrite,readrandom,readseq,compact,readwhilewriting,levelstats"

    def work(folder: Path, served: bool) -> Any:
        command = [db_bench, f"--benchmarks={benchmarks}", "--db=db", "--num=30000", "--reads=20000", "--seed=7"]
        return bench.one([*command, "--threads=2", "--value_size=200", "--verify_checksum=1"], folder, served=served)

    system, served = bench.both(work, [Path(db_bench).resolve().name])

    def answers(output: bytes) -> dict[str, str]:
        """Benchmark -> how many keys it found, for those that two runs must agree on."""
        text = output.decode(errors="replace")
        return dict(re.findall(r"^(readrandom) .*?\((\d+ of \d+) found\)", text, re.MULTILINE))

    for name in benchmarks.split(",")[:-1]:
        assert re.search(rf"^{name} +:", served.stdout.decode(errors="replace"), re.MULTILINE), f"{name} did not run"
    if not answers(system.stdout):
        pytest.fail("db_bench's report was not understood")
    assert answers(served.stdout) == answers(system.stdout)
