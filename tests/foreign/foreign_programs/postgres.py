"""PostgreSQL: statements of every kind, concurrent sessions, a backend killed, the server killed, data compared."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from foreign_programs.program import Program
from foreign_programs.room import Room, program

BIN = "/usr/lib/postgresql/*/bin"
STATEMENTS = Path(__file__).parent / "scripts" / "postgres.sql"
SESSIONS = 8
BALANCES = (
    "select (select sum(abalance) from pgbench_accounts) = (select sum(delta) from pgbench_history),"
    " (select sum(bbalance) from pgbench_branches) = (select sum(delta) from pgbench_history),"
    " (select sum(tbalance) from pgbench_tellers) = (select sum(delta) from pgbench_history)"
)


def work(room: Room) -> None:
    data = room.folder / "data"
    connection = ["-h", str(room.folder), "-U", "postgres"]
    room.run(
        [program("initdb", BIN), "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-k"]
    )
    command = [program("postgres", BIN), "-D", str(data), "-k", str(room.folder), "-c", "listen_addresses="]
    # A kill of processes is survived without fsync; that of the machine is not what this is about.
    for setting in ("dynamic_shared_memory_type=mmap", "fsync=off", "shared_buffers=32MB", "max_wal_size=128MB"):
        command += ["-c", setting]

    def ready() -> bool:
        return room.run([program("pg_isready", BIN), "-q", *connection], statuses=None).status == 0

    def ask(statement: str) -> str:
        return room.run([program("psql", BIN), *connection, "-XAtq", "-c", statement]).text

    def bench(*options: str) -> list[str]:
        return [program("pgbench", BIN), *connection, *options, "postgres"]

    def killed_mid_load(victim: int, number: int) -> None:
        load = room.start(bench("-n", "-c", str(SESSIONS), "-j", "2", "-T", "600"), "load.log")
        time.sleep(room.seconds)
        os.kill(victim, number)
        room.wait(lambda: load.poll() is not None)

    def consistent(when: str) -> None:
        room.fact(f"balances {when}", ask(BALANCES))
        dump = room.run([program("pg_dump", BIN), *connection, *NOT_BENCH]).stdout
        # A dump is fenced by a word made up for each.
        lines = [line for line in dump.splitlines() if not line.startswith((b"\\restrict", b"\\unrestrict"))]
        room.digest(f"tables {when}", b"\n".join(lines))
        room.fact(
            f"amcheck {when}", room.run([program("pg_amcheck", BIN), *connection, *AMCHECK], statuses=None).status
        )

    with room.server(command, ready, "log") as server:
        told = room.run(
            [program("psql", BIN), *connection, "-Xa", "-f", "-"], stdin=STATEMENTS.read_bytes(), statuses=None
        )
        room.fact("statements' status", told.status)
        room.digest("statements", told.stdout)
        room.digest("statements' errors", told.stderr)
        room.run(bench("-i", "-q", "-s", "2"))
        fixed = room.run(bench("-n", "-c", str(SESSIONS), "-j", "2", "-t", "400", "--random-seed=1", "-M", "prepared"))
        room.fact(
            "transactions", [line for line in fixed.text.splitlines() if "processed:" in line or "failed" in line]
        )
        room.fact("sum of the changes", ask("select sum(delta), count(*) from pgbench_history"))
        consistent("after a load")
        # One session is killed: the server ends all others, and recovers by itself.
        killed_mid_load(
            int(ask("select pid from pg_stat_activity where backend_type = 'checkpointer'")), signal.SIGKILL
        )
        room.wait(ready, server, "log")
        consistent("after a session's end")
        killed_mid_load(server.pid, signal.SIGQUIT)
        room.fact("server after SIGQUIT", server.wait(60))
    with room.server(command, ready, "log") as server:
        consistent("after SIGQUIT")
        killed_mid_load(server.pid, signal.SIGKILL)
        server.wait(60)
        # The sessions notice by themselves that their server is gone; the next one waits for the last of them.
        time.sleep(2)
    with room.server(command, ready, "log") as server:
        consistent("after SIGKILL")
        room.stop(server, signal.SIGINT, "end")
    log = (room.folder / "log").read_text(errors="replace")
    faults = [line for line in log.splitlines() if "PANIC" in line or "was terminated by signal" in line]
    causes = sorted({line.partition("was terminated by ")[2] or "PANIC" for line in faults})
    room.fact("processes that died", causes)
    if causes != ["signal 9: Killed"]:
        room.complain("postgres", "\n".join(faults).encode())


NOT_BENCH = ("--exclude-table=pgbench_*", "postgres")
AMCHECK = ("--install-missing", "--heapallindexed", "-d", "postgres")

POSTGRES = Program(
    name="postgresql",
    what=(
        f"statements of every kind, {SESSIONS} sessions of pgbench; checkpointer killed, server by SIGQUIT and SIGKILL "
        "under load; recovery; dump and balances compared, pg_amcheck"
    ),
    package="postgresql",
    needs=(f"{BIN}/postgres", f"{BIN}/pgbench", f"{BIN}/pg_amcheck"),
    images=("postgres", "psql", "pgbench", "initdb"),
    work=work,
    version=(f"{BIN}/postgres", "--version"),
    user="nobody",
)
