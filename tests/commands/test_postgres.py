"""PostgreSQL as a workload: proved in each of its many processes, and nothing of it left however its run ends."""

from __future__ import annotations

import glob
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from freestone.records import store

pytestmark = [
    pytest.mark.long,
    pytest.mark.xdist_group("measured"),
]  # what they measure or look for, others would disturb

Tool = Callable[..., subprocess.CompletedProcess[str]]

BENCH = ("bench", "apps", "--quick", "--only", "postgres-totals")
FOREVER = 'title = "t"\n[[workload]]\nname = "w"\ncommand = {command}\nreads = "json"\n'


@pytest.fixture(autouse=True)
def package() -> None:
    if not glob.glob("/usr/lib/postgresql/*/bin/pgbench"):
        pytest.skip("PostgreSQL is not here (Debian: postgresql)")


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder for the clusters; its path is short, because that of a socket has to be."""
    with tempfile.TemporaryDirectory(prefix="fs-") as folder:
        yield Path(folder)


def segments() -> set[str]:
    """The shared memory that outlives processes, of every cluster of this machine."""
    return {line.split()[1] for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]} | {
        path.name for path in Path("/dev/shm").glob("PostgreSQL.*")
    }


def servers(folder: Path) -> dict[Path, bytes]:
    """The command lines of living processes that speak of a cluster in this folder, by their entries in /proc."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if f"{folder}/freestone-app.".encode() in words:
            found[entry] = words
    return found


def segments_of(folder: Path) -> set[str]:
    """The shared memory that outlives processes, of the clusters in this folder: what their processes have mapped."""
    found = set()
    for entry in servers(folder):
        try:
            lines = (entry / "maps").read_text().splitlines()
        except OSError:
            continue
        for _, _, _, _, inode, *name in (line.split() for line in lines):
            if name and name[0].startswith("/dev/shm/PostgreSQL."):
                found.add(Path(name[0]).name)
            elif name and name[0].startswith("/SYSV"):
                found.add(inode)
    return found


@contextmanager
def every_segment_of(folder: Path) -> Iterator[set[str]]:
    """Whatever shared memory the clusters in this folder have mapped meanwhile, looked up twenty times a second.

    What else the machine has of it is not asked: clusters that other tests kill leave theirs behind.
    """
    found: set[str] = set()
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.05):
            found.update(segments_of(folder))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield found
    finally:
        ended.set()
        looking.join()


def test_every_process_is_proved_and_only_the_load_counts(
    freestone: Tool, only_folder: Callable[[], Path], temporary: Path
) -> None:
    with every_segment_of(temporary) as shared:
        done = freestone(*BENCH, "-a", "freestone,glibc", "-n", "1", env={"TMPDIR": str(temporary)}, timeout=300)
    assert done.returncode == 0, done.stderr
    records = store.read_trials(only_folder()).records
    assert len(records) == 3
    for record in records:
        assert (record.status, record.proof.valid) == ("ok", True), record.reason
        assert {Path(each.exe).name for each in record.proof.processes} >= {
            "initdb",
            "postgres",
            "pgbench",
            "pg_isready",
        }
        assert record.figures is not None
        assert record.metrics is not None
        assert 0 < record.figures["seconds"] < record.metrics.wall_s / 2, "making the cluster takes longer"
        assert record.notes == [], "nothing was left behind by the program"
    assert list(temporary.iterdir()) == []
    assert shared, "a cluster has shared memory"
    assert segments().isdisjoint(shared)


@pytest.mark.usefixtures("heard_signals")
@pytest.mark.parametrize("ending", ["SIGINT", "SIGTERM", "timeout"])
def test_a_run_that_is_ended_leaves_no_server_no_cluster_and_no_shared_memory(
    command: list[str], environment: dict[str, str], tmp_path: Path, temporary: Path, ending: str
) -> None:
    (tmp_path / "endless.sql").write_text("select pg_sleep(0.01);\n")
    words = plain_command()
    words[words.index("-f") + 1] = str(tmp_path / "endless.sql")
    words[words.index("-t") : words.index("-t") + 2] = ["-T", "600"]
    (tmp_path / "endless.toml").write_text(FOREVER.replace("{command}", repr(words)))
    limit = ["--timeout", "5"] if ending == "timeout" else []
    tool = subprocess.Popen(
        [*command, "bench", "endless.toml", "-a", "glibc", "-n", "1", *limit],
        cwd=tmp_path,
        env={**environment, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        for _ in range(600):
            if any(b"/pgbench" in words and b"\0-T\0" in words for words in servers(temporary).values()):
                break
            time.sleep(0.05)
        else:
            pytest.fail("the load did not begin within half a minute")
        shared = segments_of(temporary)
        if not limit:
            tool.send_signal(signal.Signals[ending])
        _, stderr = tool.communicate(timeout=60)
    finally:
        tool.kill()
        tool.communicate()
    expected = 3 if limit else 128 + signal.Signals[ending]
    assert tool.returncode == expected, stderr
    assert servers(temporary) == {}
    assert list(temporary.glob("freestone-app.*")) == []
    assert shared, "a cluster has shared memory"
    assert segments().isdisjoint(shared)


def plain_command() -> list[str]:
    """The command of the suite, its programs in their places."""
    from freestone import suites

    (workload,) = suites.select([suites.load("apps")], only=["postgres-totals"], directory=os.getcwd()).workloads
    return workload.command
