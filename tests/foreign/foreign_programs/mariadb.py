"""MariaDB: statements of every kind, sessions, the server killed under load, recovery, every table checked."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from foreign_programs.program import Program
from foreign_programs.room import Room, program

STATEMENTS = Path(__file__).parent / "scripts" / "mariadb.sql"
SESSIONS = 8
FIXED = "start transaction; " + "update account set v = v + {n} where id = {n} * 37 % 5000; " * 3 + "commit;"
MOVE = (
    "set @a = 1 + floor(rand() * 4000), @b = 4500 + floor(rand() * 400); start transaction; "
    "update account set v = v - 1 where id = @a; "
    "update account set v = v + 1 where id = @b; insert into journal (t) values (now()); commit;"
)


def work(room: Room) -> None:
    data, socket = room.folder / "data", room.folder / "s"
    user = f"--user={room.user}" if room.user else "--user=root"
    options = [f"--datadir={data}", user, "--no-defaults"]
    installed = room.run(
        [
            program("mariadb-install-db"),
            "--no-defaults",
            f"--datadir={data}",
            "--auth-root-authentication-method=normal",
        ]
    )
    room.fact("installed", installed.status)
    command = [
        *[program("mariadbd", "/usr/sbin"), "--no-defaults", *options[:2], f"--socket={socket}", "--skip-networking"],
        *["--innodb-buffer-pool-size=48M", "--innodb-flush-log-at-trx-commit=2", f"--pid-file={room.folder}/pid"],
        *["--skip-grant-tables", f"--tmpdir={room.folder}", "--thread-handling=pool-of-threads"],
    ]
    client = [program("mariadb"), "--no-defaults", f"--socket={socket}", "--batch", "--force"]

    def ready() -> bool:
        return room.run([*client, "-e", "select 1"], statuses=None).status == 0

    def ask(statement: str) -> str:
        return room.run([*client, "t", "-N", "-e", statement]).text

    def checked(when: str) -> None:
        tables = ask("check table person, purchase, old, temporary_total, account, journal extended")
        room.fact(f"check {when}", [line for line in tables.splitlines() if not line.endswith("status\tOK")])
        room.fact(f"checksums {when}", ask("checksum table person, purchase, old, temporary_total").split())
        # Every transaction moves one from here to there.
        room.fact(f"sum {when}", ask("select sum(v) from account"))

    def load(statements: str, count: int) -> None:
        file = room.folder / "load.sql"
        file.write_text(statements)
        sessions = [room.start(["sh", "-c", f'exec "$@" < {file}', "sh", *client, "t"], "load") for _ in range(count)]
        for session in sessions:
            room.wait(lambda: session.poll() is not None)  # noqa: B023, waited for within the turn

    with room.server(command, ready, "log") as server:
        room.run([*client, "-e", "create database t"])
        told = room.run([*client, "t"], stdin=STATEMENTS.read_bytes(), statuses=None)
        room.fact("statements' status", told.status)
        room.digest("statements", told.stdout)
        room.fact("statements' errors", told.stderr.decode(errors="replace"))
        ask("create table account (id int primary key, v bigint); insert into account select seq, 0 from seq_0_to_5000")
        ask("create table journal (id int auto_increment primary key, t datetime)")
        load("\n".join(FIXED.format(n=n) for n in range(1, 400)), SESSIONS)
        checked("after a load")
        room.stop(server, signal.SIGTERM, "end after a load")
    for turn in (1, 2):
        with room.server(command, ready, "log") as server:
            file = room.folder / "moves.sql"
            file.write_text(f"{MOVE}\n" * 200_000)
            words = ["sh", "-c", f'exec "$@" < {file}', "sh", *client, "t"]
            words.remove("--force")
            sessions = [room.start(words, "moves") for _ in range(SESSIONS)]
            time.sleep(room.seconds)
            server.send_signal(signal.SIGKILL)
            server.wait()
            for session in sessions:
                session.wait(60)
        with room.server(command, ready, "log") as server:
            checked(f"after kill {turn}")
            room.fact(f"transactions before kill {turn}", int(ask("select count(*) from journal")) > 0)
            room.stop(server, signal.SIGTERM, f"end after kill {turn}")
    log = (room.folder / "log").read_text(errors="replace")
    faults = [line for line in log.splitlines() if "[ERROR]" in line or "got signal" in line]
    room.fact("faults", len(faults))
    if faults:
        room.complain("mariadbd", "\n".join(faults).encode())


MARIADB = Program(
    name="mariadb",
    what=f"statements of every kind, {SESSIONS} sessions; killed twice under load; recovery, CHECK TABLE, checksums",
    package="mariadb-server",
    needs=("/usr/sbin/mariadbd", "mariadb", "mariadb-install-db"),
    images=("mariadbd", "mariadb"),
    work=work,
    version=("/usr/sbin/mariadbd", "--version"),
    user="nobody",
)
