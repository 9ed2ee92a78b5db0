"""Servers of databases and pages keep what they were given, killed in the middle and started anew, or reloaded."""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

STARTING_S = 60.0
CLIENTS = 4
READY = "database system is ready to accept connections"
"""What PostgreSQL writes when it has begun, and again when it has recovered."""

# They hold each two servers and their data.
pytestmark = pytest.mark.xdist_group("servers")


@pytest.fixture
def open_bench(bench: Any) -> Iterator[Any]:
    """The bench where other users may come in, and the path of a socket is short."""
    with tempfile.TemporaryDirectory(prefix="fs-") as folder:
        Path(folder).chmod(0o777)
        yield replace(bench, scratch=Path(folder))


def plain_user(folder: Path) -> list[str]:
    """Words before a command that must not run as root, whose folder is given away."""
    if os.getuid() != 0:
        return []
    notes = folder.parent / f"{folder.name}.notes"
    notes.touch()
    notes.chmod(0o666)  # root's clients write there too
    user = pwd.getpwnam("nobody")
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user.pw_uid, user.pw_gid)
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("root, and no setpriv (Debian: util-linux)")
    return [setpriv, f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


@contextmanager
def server(bench: Any, command: list[str], folder: Path, *, served: bool) -> Iterator[subprocess.Popen[bytes]]:
    """A server in a session of its own, killed at the end if it is still there."""
    with open(folder / "server.log", "ab") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=bench.environment(folder, served=served, extra={}),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(STARTING_S)


def await_answer(ask: list[str], process: subprocess.Popen[bytes], folder: Path) -> None:
    end = time.monotonic() + STARTING_S
    while subprocess.run(ask, cwd=folder, capture_output=True, check=False).returncode != 0:
        log = (folder / "server.log").read_text(errors="replace")[-2000:]
        assert process.poll() is None, f"the server has ended with {process.returncode}:\n{log}"
        assert time.monotonic() < end, f"no answer after {STARTING_S:.0f} s:\n{log}"
        time.sleep(0.1)


def kill_all(process: subprocess.Popen[bytes]) -> None:
    """What a crash of the machine leaves behind: nobody tidies up, and nobody is left.

    Every process of PostgreSQL is the leader of a session of its own, which a signal to the group does not reach; one
    that has not yet noticed its parent's end holds the shared memory, and the next server does not start.
    """
    everybody = [process.pid]
    for each in everybody:
        with contextlib.suppress(FileNotFoundError):
            children = Path(f"/proc/{each}/task/{each}/children").read_text().split()
            everybody += map(int, children)
    for each in everybody:
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    process.wait(STARTING_S)
    end = time.monotonic() + STARTING_S
    while any(Path(f"/proc/{each}").exists() for each in everybody):
        assert time.monotonic() < end, f"some of {everybody} are still there"
        time.sleep(0.01)


def in_parallel(commands: list[list[str]], texts: list[str], folder: Path, environment: dict[str, str]) -> None:
    """Clients at the same time, each with its own input; fails when one does."""
    running = []
    for command, text in zip(commands, texts, strict=True):
        client = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert client.stdin is not None
        client.stdin.write(text.encode())
        client.stdin.close()
        client.stdin = None
        running.append(client)
    for client in running:
        output, _ = client.communicate(timeout=200)
        assert client.returncode == 0, output.decode(errors="replace")[-2000:]


# -- SQL that both databases understand --------------------------------------------------------------------------------

SCHEMA = "".join(
    f"CREATE TABLE t{n} (id INT PRIMARY KEY, kind INT NOT NULL, name VARCHAR(300) NOT NULL);\n"
    f"CREATE INDEX by_kind_{n} ON t{n} (kind, name);\n"
    for n in range(CLIENTS)
)


def load(client: int, rows: int) -> str:
    """Rows of many lengths in transactions, some changed, some deleted; the same every time."""
    lines = []
    for first in range(0, rows, 100):
        lines.append("BEGIN;")
        values = ",".join(
            f"({i},{i * 7919 % 97},'{'abcdefghijklmnopqrstuvwxyz'[i % 26] * (i * 31 % 250)}{i}')"
            for i in range(first, first + 100)
        )
        lines.append(f"INSERT INTO t{client} VALUES {values};")
        lines.append(f"UPDATE t{client} SET kind = kind + 1, name = CONCAT('u', id) WHERE kind = {first // 100 % 97};")
        lines.append(f"DELETE FROM t{client} WHERE kind = {(first // 100 * 13 + 5) % 97};")
        lines.append("COMMIT;")
    return "\n".join(lines) + "\n"


def questions(digest: str) -> str:
    return "".join(
        f"SELECT {n}, COUNT(*), SUM(kind), SUM(LENGTH(name)) FROM t{n};\n"
        f"SELECT kind, COUNT(*), MIN(name), MAX(name) FROM t{n} GROUP BY kind ORDER BY kind;\n"
        f"SELECT {digest.format(table=f't{n}')};\n"
        for n in range(CLIENTS)
    )


# -- the servers ----------------------------------------------------------------------------------------------------


def postgres(bench: Any, rows: int, folder: Path, served: bool) -> Any:
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if not found:
        pytest.skip("PostgreSQL is not here (Debian: postgresql)")
    programs = Path(found[-1])
    as_user = plain_user(folder)
    sockets = folder
    bench.one([*as_user, str(programs / "initdb"), "-D", "data", "-A", "trust", "-U", "test"], folder, served=served)
    command = [*as_user, str(programs / "postgres"), "-D", "data", "-k", str(sockets), "-c", "listen_addresses="]
    client = [
        str(programs / "psql"),
        "-h",
        str(sockets),
        "-U",
        "test",
        "-d",
        "postgres",
        "-qAtX",
        "-v",
        "ON_ERROR_STOP=1",
    ]
    ready = [str(programs / "pg_isready"), "-h", str(sockets)]
    environment = bench.environment(folder, served=served, extra={})
    with server(bench, command, folder, served=served) as process:
        await_answer(ready, process, folder)
        bench.one(client, folder, served=served, stdin=SCHEMA.encode())
        in_parallel([client] * CLIENTS, [load(n, rows) for n in range(CLIENTS)], folder, environment)
        # One backend dies in the middle: the others are ended by the postmaster, which recovers.
        dying = subprocess.Popen([*client, "-c", "SELECT pg_sleep(600)"], cwd=folder, stderr=subprocess.DEVNULL)
        backend = b""
        while not backend.strip():
            ask = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'"
            backend = bench.one([*client, "-c", ask], folder, served=served).stdout
        os.kill(int(backend), signal.SIGKILL)
        dying.wait(STARTING_S)
        # Until the postmaster has noticed, it still answers.
        await_answer(["sh", "-c", f"test $(grep -c '{READY}' server.log) = 2"], process, folder)
        bench.one(client, folder, served=served, stdin=b"UPDATE t0 SET kind = kind + 1 WHERE id % 3 = 0;")
        kill_all(process)
    with server(bench, command, folder, served=served) as process:
        await_answer(ready, process, folder)
        await_answer([*client, "-c", "SELECT 1"], process, folder)
        digest = "md5(string_agg(id || ' ' || kind || ' ' || name, ',' ORDER BY id)) FROM {table}"
        said = bench.one(client, folder, served=served, stdin=questions(digest).encode())
        process.send_signal(signal.SIGINT)
        assert process.wait(STARTING_S) == 0
    return said


def mariadb(bench: Any, rows: int, folder: Path, served: bool) -> Any:
    daemon, client_path = shutil.which("mariadbd", path="/usr/sbin:/usr/bin"), shutil.which("mariadb")
    install = shutil.which("mariadb-install-db")
    if daemon is None or client_path is None or install is None:
        pytest.skip("MariaDB is not here (Debian: mariadb-server)")
    as_user = plain_user(folder)
    data = folder / "data"
    options = ["--no-defaults", f"--datadir={data}"]
    # Every MariaDB that begins removes what looks like a temporary table of an earlier one, also that of another.
    own = {"TMPDIR": str(folder)}
    bench.one(
        [*as_user, install, *options, "--auth-root-authentication-method=normal"], folder, served=False, extra=own
    )
    socket = folder / "s"
    command = [*as_user, daemon, *options, f"--socket={socket}", "--skip-networking", f"--pid-file={folder / 'pid'}"]
    command.append(f"--tmpdir={folder}")
    client = [client_path, "--no-defaults", f"--socket={socket}", "-uroot", "-N", "-B"]
    environment = bench.environment(folder, served=served, extra={})
    with server(bench, command, folder, served=served) as process:
        await_answer([*client, "-e", "SELECT 1"], process, folder)
        bench.one(client, folder, served=served, stdin=b"CREATE DATABASE d;")
        client.append("d")
        bench.one(client, folder, served=served, stdin=SCHEMA.encode())
        in_parallel([client] * CLIENTS, [load(n, rows) for n in range(CLIENTS)], folder, environment)
        kill_all(process)
    with server(bench, command, folder, served=served) as process:
        await_answer([*client, "-e", "SELECT 1"], process, folder)
        checked = bench.one([*client, "-e", "CHECK TABLE t0, t1, t2, t3"], folder, served=served)
        assert checked.stdout.count(b"\tOK\n") == CLIENTS, checked.stdout
        digest = "SUM(CRC32(CONCAT(id, ' ', kind, ' ', name))) FROM {table}"
        said = bench.one(client, folder, served=served, stdin=questions(digest).encode())
        process.terminate()
        assert process.wait(STARTING_S) == 0
    return said


def nginx(bench: Any, reloads: int, folder: Path, served: bool) -> Any:
    daemon, load_path = shutil.which("nginx", path="/usr/sbin:/usr/bin"), shutil.which("wrk")
    if daemon is None or load_path is None:
        pytest.skip("nginx or wrk is not here (Debian: nginx, wrk)")
    port = 18000 + os.getpid() % 2000 + (2000 if served else 0)
    pages = folder / "pages"
    pages.mkdir()
    for n in range(20):
        (pages / f"{n}.txt").write_text(f"{n} " * 3000)
    (folder / "nginx.conf").write_text(
        f"daemon off; worker_processes 2; pid {folder}/pid; error_log {folder}/error.log; {user_line()}\n"
        "events { worker_connections 200; }\n"
        f"http {{ access_log {folder}/access.log; gzip on; gzip_types text/plain; gzip_min_length 100;\n"
        f" server {{ listen 127.0.0.1:{port}; root {pages}; location /own {{ return 200 'here'; }} }} }}\n"
    )
    folder.chmod(0o755)
    pages.chmod(0o755)
    command = [daemon, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    (folder / "wrk.lua").write_text(
        "local n = 0\n"
        "request = function() n = n + 1; "
        "return wrk.format('GET', '/' .. n % 20 .. '.txt', {['Accept-Encoding'] = 'gzip'}) end\n"
        "done = function(summary) io.write('bad ', summary.errors.status, '\\n') end\n"
    )
    load = [load_path, "-t1", "-c8", f"-d{reloads // 4 + 2}s", "-s", "wrk.lua", f"http://127.0.0.1:{port}/"]
    with server(bench, command, folder, served=served) as process:
        await_answer([load_path, "-t1", "-c1", "-d1s", f"http://127.0.0.1:{port}/own"], process, folder)
        loading = subprocess.Popen(load, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for _ in range(reloads):
            time.sleep(0.2)
            process.send_signal(signal.SIGHUP)
        output, _ = loading.communicate(timeout=200)
        assert loading.returncode == 0, output
        answered = re.search(rb"(\d+) requests in", output)
        assert answered is not None, output
        assert int(answered[1]) > 100, output
        assert b"bad 0\n" in output, output
        process.send_signal(signal.SIGQUIT)
        assert process.wait(STARTING_S) == 0
    errors = (folder / "error.log").read_text(errors="replace")
    assert not re.search(r"\[(alert|crit|emerg)\]|exited on signal", errors), errors[-2000:]
    return None


def user_line() -> str:
    return "user root;" if os.getuid() == 0 else ""


@pytest.mark.long
def test_postgres_is_killed_and_recovers(open_bench: Any) -> None:
    system, served = open_bench.both(
        lambda folder, served: postgres(open_bench, 1000, folder, served), ["initdb", "postgres", "psql"]
    )
    assert len(system.stdout) > 5000
    assert served.stdout == system.stdout


def test_mariadb_is_killed_and_recovers(open_bench: Any) -> None:
    system, served = open_bench.both(
        lambda folder, served: mariadb(open_bench, 1000, folder, served), ["mariadbd", "mariadb"]
    )
    assert len(system.stdout) > 5000
    assert served.stdout == system.stdout


@pytest.mark.long
def test_nginx_reloads_under_load(bench: Any) -> None:
    bench.both(lambda folder, served: nginx(bench, 8, folder, served), ["nginx"])
