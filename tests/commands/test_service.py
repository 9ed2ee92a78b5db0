"""A server under load, from its start to its end: what is measured, and every way in which it goes wrong."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from freestone.records import store
from freestone.records.schema import TrialRecord

Tool = Callable[..., subprocess.CompletedProcess[str]]

SERVER = r"""
import os, signal, sys, time
def leave(*_):
    os.remove("up")
    sys.exit(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
signal.signal(signal.SIGTERM, signal.SIG_IGN if sys.argv[1] == "stubborn" else leave)
served = "freestone" in os.environ["LD_PRELOAD"].split(":")[1]
if sys.argv[1] == "refuses" or sys.argv[1] == "refuses-freestone" and served:
    sys.exit("address already in use")
def wait_for_a_child():
    if os.fork() == 0:
        os._exit(0)
    os.wait()
if "waited" in sys.argv:
    wait_for_a_child()
kept = []
with open("pid", "w") as file:
    file.write(str(os.getpid()))
open("up", "w").close()
for _ in range(1200):
    kept.append(bytes(100_000))
    until = time.process_time() + 0.05
    while sys.argv[1] == "works" and time.process_time() < until:
        pass
    if "waits" in sys.argv:
        wait_for_a_child()
    time.sleep(0.05)
"""
READY = '[ -e up ] && kill -0 "$(cat pid)"'
LOAD = """sleep 0.3; echo '{"requests": 1000, "seconds": 0.250, "p99_seconds": 0.004}'"""


@pytest.fixture
def serve(freestone: Tool, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """``serve(behaviour, load=, ready=, more options)`` compares the server above under glibc and libfreestone."""
    (tmp_path / "server.py").write_text(SERVER)

    def run(
        *server: str, options: tuple[str, ...] = (), load: str = LOAD, ready: str = READY
    ) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-I", "-S", "server.py", *server]
        asked = ["-a", "glibc,freestone", "-n", "1", "--no-report", "--ready", ready, "--load", load]
        done = freestone("compare", *asked, *options, "--", *words)
        (tmp_path / "up").unlink(missing_ok=True)
        if (tmp_path / "pid").exists():
            assert not is_there(int((tmp_path / "pid").read_text())), "nobody is left behind"
        return done

    return run


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def records(folder: Path) -> list[TrialRecord]:
    return store.read_trials(folder).records


def test_a_server_is_started_driven_and_stopped(
    serve: Callable[..., subprocess.CompletedProcess[str]], only_folder: Callable[[], Path]
) -> None:
    done = serve("serves")
    assert done.returncode == 0, done.stderr
    experiment = store.read_experiment(only_folder())
    assert experiment.workloads[0].service is not None
    assert experiment.workloads[0].time == "figure:seconds"
    for record in records(only_folder()):
        assert record.status == "ok", record.reason
        assert record.proof.valid
        assert record.figures is not None
        assert record.figures["seconds"] == 0.25 / 1000
        assert record.figures["p99_seconds"] == 0.004
        assert record.figures["faults_per_1000"] >= 0  # where huge pages come unasked there may be none
        assert 0 < record.figures["cpu_seconds"] < 0.25 / 1000, "it slept; nanoseconds are told of it all the same"
        assert record.figures["rss_kib_loaded"] > 1000
        assert record.metrics is not None
        assert len(record.metrics.series) > 3, "its memory over time"
    assert "per second: glibc 4,000, freestone 4,000" in " ".join(done.stdout.split())


def test_processor_time_that_may_be_wrong_by_more_than_a_hundredth_is_left_out_and_named(
    serve: Callable[..., subprocess.CompletedProcess[str]], only_folder: Callable[[], Path]
) -> None:
    """It waits for children under load, and the kernel tells in steps of 10 ms what they used."""
    done = serve("waits")
    assert done.returncode == 0, done.stderr
    for record in records(only_folder()):
        assert record.figures is not None
        assert "cpu_seconds" not in record.figures
        assert "faults_per_1000" in record.figures
    said = " ".join(done.stdout.split())
    assert "CPU/request is left out: the kernel tells what ended processes used in steps of 10 ms" in said
    assert "(2 of 2 runs)" in said or "(3 of 3 runs)" in said


def test_children_that_ended_before_the_load_leave_processor_time_as_exact_as_it_is(
    serve: Callable[..., subprocess.CompletedProcess[str]], only_folder: Callable[[], Path]
) -> None:
    assert serve("waited").returncode == 0
    for record in records(only_folder()):
        assert record.figures is not None
        assert record.figures["cpu_seconds"] > 0


@pytest.mark.long
def test_processor_time_is_told_where_its_steps_are_fine_enough(
    serve: Callable[..., subprocess.CompletedProcess[str]], only_folder: Callable[[], Path]
) -> None:
    load = f"""{sys.executable} -I -S -c 'import time
with open("pid") as file: stat = f"/proc/{{file.read()}}/stat"
def used(): return sum(map(int, open(stat).read().split()[13:15]))
until = used() + 210
while used() < until: time.sleep(0.05)'
echo '{{"requests": 1000, "seconds": 1.5}}'"""
    done = serve("works", "0", "waits", load=load)
    assert done.returncode == 0, done.stderr
    for record in records(only_folder()):
        assert record.figures is not None
        assert 2.0 <= 1000 * record.figures["cpu_seconds"] < 20


@pytest.mark.parametrize(
    ("server", "options", "load", "said"),
    [
        (["serves"], (), "echo no route >&2; exit 3", "the load failed, exit status 3: no route"),
        (["serves"], (), "kill -9 $$", "the load failed, ended by signal 9"),
        (
            ["serves"],
            (),
            LOAD.replace("0.250", "9.0"),
            r"the load is no measurement: it says seconds: 9 s, and its command was over after 0\.\d+ s",
        ),
        (["serves"], (), LOAD.replace("0.250", "0.02"), "the load is no measurement: .*: let it run longer"),
        (["serves"], (), 'kill -9 "$(cat pid)"; sleep 30', "the server ended under load: killed by SIGKILL"),
        (["serves", "7"], (), LOAD, "the server was told to stop and ended otherwise: exit status 7"),
        (["refuses"], (), LOAD, "the server ended before it was ready: exit status 1: address already in use"),
        pytest.param(
            ["stubborn"],
            ("--stop-timeout", "0.5"),
            LOAD,
            r"the server still ran 0\.5 s after SIGTERM",
            marks=pytest.mark.long,
        ),
        (["serves"], ("--timeout", "1"), "sleep 30", "still running after 1 s"),
    ],
)
def test_what_goes_wrong_is_said_in_a_line_and_is_no_number(
    serve: Callable[..., subprocess.CompletedProcess[str]],
    only_folder: Callable[[], Path],
    server: list[str],
    options: tuple[str, ...],
    load: str,
    said: str,
) -> None:
    done = serve(*server, options=options, load=load)
    assert done.returncode == 3
    found = records(only_folder())
    assert len(found) == 3, "every run has a record"
    for record in found:
        assert record.status == ("timeout" if "--timeout" in options else "failed")
        assert record.reason is not None
        assert "\n" not in record.reason
        assert re.search(said, record.reason), record.reason


def test_a_server_that_never_gets_ready(
    serve: Callable[..., subprocess.CompletedProcess[str]], only_folder: Callable[[], Path]
) -> None:
    done = serve("serves", options=("--ready-timeout", "0.4"), ready="echo refused >&2; false")
    assert done.returncode == 3
    assert records(only_folder()) == [], "two rehearsals say it, no round is run"
    told = [line for line in done.stderr.splitlines() if "not ready" in line]
    assert len(told) == 1
    assert "twice, the server was not ready after 0.4 s: refused; it is not measured: --ready has to" in told[0]


@pytest.mark.parametrize(
    ("load", "said"),
    [("true", "; it printed nothing"), ("echo hello", "; the last line is: hello"), ("echo '{}'", "has no numbers")],
)
def test_a_load_that_tells_nothing_is_found_before_the_first_round(
    serve: Callable[..., subprocess.CompletedProcess[str]], only_folder: Callable[[], Path], load: str, said: str
) -> None:
    done = serve("serves", load=load)
    assert done.returncode == 3
    assert records(only_folder()) == [], "no round is run"
    (told,) = [line for line in done.stderr.splitlines() if "the load is no measurement: no figures" in line]
    assert said in told
    assert "(docs/guide/service.md#a-load-of-your-own)" in told


@pytest.mark.long
def test_a_server_that_is_slow_only_at_first_is_measured(
    serve: Callable[..., subprocess.CompletedProcess[str]], only_folder: Callable[[], Path]
) -> None:
    """Its files are read for the first time in the rehearsal: that alone says nothing of the rounds."""
    slow = "{ test -e warm || { sleep 2.2; test -e up && touch warm; false; }; }"
    done = serve("serves", options=("--ready-timeout", "2"), ready=f"{slow} && {READY}")
    assert done.returncode == 0, done.stderr
    assert {record.status for record in records(only_folder())} == {"ok"}


def test_a_server_that_fails_under_one_allocator_leaves_the_others_figures(
    serve: Callable[..., subprocess.CompletedProcess[str]], only_folder: Callable[[], Path]
) -> None:
    done = serve("refuses-freestone")
    assert done.returncode == 4
    statuses = {record.configuration: record.status for record in records(only_folder())}
    assert statuses == {"glibc": "ok", "freestone": "failed"}


def test_what_answers_before_the_server_is_begun_is_another(
    serve: Callable[..., subprocess.CompletedProcess[str]], only_folder: Callable[[], Path], tmp_path: Path
) -> None:
    done = serve("serves", ready="true")
    assert done.returncode == 3
    assert "'true' succeeds before the server is started: another one answers there" in done.stderr
    assert not (tmp_path / "pid").exists(), "nothing was started"
    assert len(records(only_folder())) == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--ready", "true"], "a server needs both --ready and --load, each a command; there is --ready"),
        (["--load", "true"], "there is --load"),
        (["--stop-timeout", "5"], "there is --stop-timeout"),
        (["--ready", " ", "--load", "true"], "each a command"),
        (
            ["--ready", "true", "--load", "true", "--ready-timeout", "0"],
            "-timeout: it takes from 1 ms to 7 d, not '0'",
        ),
        (
            ["--ready", "true", "--load", "true", "--stop-timeout", "nan"],
            "-timeout: it takes from 1 ms to 7 d, not 'nan'",
        ),
    ],
)
def test_wrong_use(freestone: Tool, tmp_path: Path, options: list[str], said: str) -> None:
    done = freestone("compare", "-n", "1", *options, "--", "true")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
    assert not (tmp_path / "results").exists(), "nothing is begun"


def test_an_interruption_under_load_ends_server_and_load(
    command: list[str], environment: dict[str, str], tmp_path: Path, heard_signals: None
) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    load = "echo $$ > load-pid; sleep 60"
    words = ["compare", "-a", "glibc", "-n", "1", "--ready", READY, "--load", load]
    tool = subprocess.Popen(
        [*command, *words, "--", sys.executable, "-I", "-S", "server.py", "serves"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until = time.monotonic() + 60
        while not (tmp_path / "load-pid").exists() and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.1)
        tool.send_signal(signal.SIGINT)
        _, said = tool.communicate(timeout=60)
    finally:
        tool.kill()
    assert tool.returncode == 130, said
    assert "go on with: freestone compare --resume" in said
    for name in ("pid", "load-pid"):
        assert not is_there(int((tmp_path / name).read_text())), f"{name} is left behind"


FORKS = r"""
import os, signal, sys, time
for name in ("go", "done"):
    if os.path.exists(name):
        os.remove(name)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
open("up", "w").close()
with open("pid", "w") as file:
    file.write(str(os.getpid()))
while not os.path.exists("go"):
    time.sleep(0.01)
for _ in range(5):
    if os.fork() == 0:
        while time.process_time() < 0.3:
            pass
        os._exit(0)
try:
    os.wait()
except ChildProcessError:
    open("done", "w").close()
time.sleep(600)
"""


@pytest.mark.long
def test_children_of_a_server_that_ignores_their_ends_are_in_its_cpu_time(
    freestone: Tool, tmp_path: Path, only_folder: Callable[[], Path]
) -> None:
    """As one that forks for each connection; it is ended by SIGTERM, and says nothing."""
    (tmp_path / "forks.py").write_text(FORKS)
    load = """touch go; until [ -e done ]; do sleep 0.02; done; echo '{"requests": 5, "seconds": 0.500}'"""
    words = [sys.executable, "-I", "-S", "forks.py"]
    done = freestone("compare", "-a", "glibc", "-n", "1", "--no-report", "--ready", READY, "--load", load, "--", *words)
    assert done.returncode == 0, done.stderr
    (record,) = [each for each in records(only_folder()) if each.figures is not None][:1]
    assert record.figures is not None
    assert 0.3 * 0.95 < record.figures["cpu_seconds"] < 0.3 * 2
    assert record.metrics is not None
    assert record.metrics.cpu_s is not None
    assert record.metrics.cpu_s > 1.5 * 0.95
    assert any("ignores SIGCHLD" in note for note in record.notes)


FORKS_FOR_EACH_CLIENT = r"""
import os, signal, socket, time
def leave(*_):
    try:
        while True:
            os.wait()
    except ChildProcessError:
        os._exit(0)
signal.signal(signal.SIGTERM, leave)
listening = socket.create_server(("127.0.0.1", 0))
with open("pid", "w") as file:
    file.write(str(os.getpid()))
with open("port", "w") as file:
    file.write(str(listening.getsockname()[1]))
open("up", "w").close()
while True:
    client, _ = listening.accept()
    if os.fork() == 0:
        until = time.process_time() + 0.0395
        while time.process_time() < until:
            os.getppid()
        client.sendall(b"!")
        client.recv(1)
        time.sleep(2)
        os._exit(0)
    client.close()
"""
CLIENTS = r"""
import json, socket, time
begun = time.perf_counter()
with open("port") as file:
    port = int(file.read())
clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(24)]
for client in clients:
    client.recv(1)
print(json.dumps({"requests": 24, "seconds": time.perf_counter() - begun}))
"""


@pytest.mark.long
def test_processor_time_of_a_server_that_forks_for_each_client_is_what_the_kernel_tells_at_its_end(
    freestone: Tool, tmp_path: Path, only_folder: Callable[[], Path]
) -> None:
    """Its processes live on after the load; each has used less than four of the kernel's steps and a bit."""
    (tmp_path / "server.py").write_text(FORKS_FOR_EACH_CLIENT)
    (tmp_path / "clients.py").write_text(CLIENTS)
    served = ["--ready", "[ -e up ]", "--conclude", "rm -f up", "--load", f"{sys.executable} -I -S clients.py"]
    words = ["compare", "-a", "glibc", "-n", "1", "--no-report", *served]
    done = freestone(*words, "--", sys.executable, "-I", "-S", "server.py")
    assert done.returncode == 0, done.stdout + done.stderr
    found = [record for record in records(only_folder()) if record.figures is not None and record.metrics is not None]
    assert found != []
    for record in found:
        assert record.figures is not None
        assert record.metrics is not None
        assert record.metrics.cpu_s is not None
        under_load_s = 24 * record.figures["cpu_seconds"]
        assert 24 * 0.0395 <= under_load_s <= record.metrics.cpu_s
        assert under_load_s > 0.9 * record.metrics.cpu_s, "the rest is its start and its end"
