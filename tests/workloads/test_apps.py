"""The wrappers that make one command of a server under load, or of a program that needs a folder of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from freestone import native

Run = Callable[..., subprocess.CompletedProcess[str]]

SERVER = """
import signal, socket, sys, time
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1] + "/socket"); s.listen()
open("folder", "w").write(sys.argv[1]); open("started", "w").write("")
while True: s.accept()
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a wrapper in an empty folder; temporary files go to ``temporary`` there."""
    (tmp_path / "temporary").mkdir()
    (tmp_path / "server.py").write_text(SERVER)

    def start(program: str, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(native.folder("workloads") / "apps" / program), *words],
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path / "temporary")},
            capture_output=True,
            text=True,
            timeout=60,
        )

    return start


def left(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "temporary").iterdir())


def test_a_server_is_started_loaded_and_stopped(run: Run, tmp_path: Path) -> None:
    done = run(
        "served", "--idle", "0.1", sys.executable, "server.py", "@folder",
        "--", "sh", "-c", "test -e started && sleep 0.1 && echo unheard",
        "--", "test", "-S", "@folder/socket",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert said["seconds"] == pytest.approx(sum(said["load_seconds"]))
    assert 0.1 <= said["load_seconds"][0] < 5
    assert 1000 < said["server_rss_kib"] <= said["server_peak_kib"]
    assert said["rss_kib_idle"] > 1000
    assert not Path((tmp_path / "folder").read_text()).exists()
    assert left(tmp_path) == []


def test_without_idle_time_there_is_no_figure_of_it(run: Run) -> None:
    done = run("served", sys.executable, "server.py", "@folder", "--", "true")
    assert done.returncode == 0, done.stderr
    assert "rss_kib_idle" not in json.loads(done.stdout)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ((), 2, "served: a command is empty; usage"),
        (("true",), 2, "served: the load is missing; usage"),
        (("true", "--"), 2, "served: a command is empty; usage"),
        (("--idle", "x", "true", "--", "true"), 2, "served: --idle takes seconds from 0 to 3600; usage"),
        (("false", "--", "true"), 1, "false ended before it listened"),
        (("no-such-program", "--", "true"), 1, "cannot execute no-such-program: No such file or directory"),
        ((sys.executable, "server.py", "@folder", "--", "false"), 1, "false ended with status 1"),
        ((sys.executable, "server.py", "@folder", "--", "sh", "-c", "kill -SEGV $$"), 1, "sh was killed by signal 11"),
    ],
)
def test_what_goes_wrong_is_named_and_nothing_is_left(
    run: Run, tmp_path: Path, words: tuple[str, ...], status: int, said: str
) -> None:
    done = run("served", *words)
    assert (done.returncode, done.stdout) == (status, "")
    assert said in done.stderr
    assert left(tmp_path) == []


def test_a_server_that_dies_under_its_load_is_a_failure(run: Run, tmp_path: Path) -> None:
    server = SERVER.replace("while True: s.accept()", "s.accept(); s.accept(); sys.exit(3)")
    (tmp_path / "server.py").write_text(server)
    load = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1]); import time; time.sleep(0.3)"
    done = run("served", sys.executable, "server.py", "@folder", "--", sys.executable, "-c", load, "@folder/socket")
    assert (done.returncode, done.stdout) == (1, "")
    assert "ended with status 3" in done.stderr
    assert left(tmp_path) == []


def test_a_folder_too_deep_for_a_socket_is_named_at_once(run: Run, tmp_path: Path) -> None:
    deep = tmp_path / "temporary" / ("x" * 100)
    deep.mkdir()
    done = subprocess.run(
        [str(native.folder("workloads") / "apps" / "served"), "sleep", "50", "--", "true"],
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(deep)},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "a socket's path has at most 107 characters; set TMPDIR to a shorter folder" in done.stderr
    assert list(deep.iterdir()) == []


def test_a_program_gets_a_folder_of_its_own_that_is_gone_afterwards(run: Run, tmp_path: Path) -> None:
    done = run("in-folder", "sh", "-c", "mkdir -p $0/a/b && echo x >$0/a/b/c && echo $0 >folder", "@folder/x")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "folder").read_text().startswith(f"{tmp_path / 'temporary'}/")
    assert left(tmp_path) == []
    assert run("in-folder", "sh", "-c", "exit 3").stderr == "sh ended with status 3\n"
    assert run("in-folder").returncode == 2
    assert left(tmp_path) == []


@pytest.mark.parametrize(("interpreter", "script"), [("perl", "keys.pl"), ("ruby", "keys.rb"), ("lua5.4", "keys.lua")])
def test_scripts_say_the_same_every_time(run: Run, interpreter: str, script: str) -> None:
    if shutil.which(interpreter) is None:
        pytest.skip(f"{interpreter} is not here")
    path = native.folder("workloads") / "apps" / script
    said = {
        subprocess.run([interpreter, str(path), "300"], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(said) == 1
    assert said != {""}
