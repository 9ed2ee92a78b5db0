"""The wrappers that make one command of a server under load, or of a program that needs a folder of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from freestone import native

pytestmark = pytest.mark.xdist_group("measured")  # what they measure or look for, others would disturb

Run = Callable[..., subprocess.CompletedProcess[str]]
Begin = Callable[..., subprocess.Popen[bytes]]

NOBODY = 65534

SERVER = """
import signal, socket, sys, time
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1] + "/socket")
open("folder", "w").write(sys.argv[1]); open("started", "w").write("")
s.listen()  # from here on it is ready
while True: s.accept()
"""


@pytest.fixture
def temporary(tmp_path: Path) -> Iterator[Path]:
    """Where temporary files go. Not below pytest's own folder: a socket's path has at most 107 characters."""
    with tempfile.TemporaryDirectory(prefix="fs-") as folder:
        (tmp_path / "temporary").symlink_to(folder)
        yield Path(folder)


@pytest.fixture
def run(tmp_path: Path, temporary: Path) -> Run:
    """Runs a wrapper in an empty folder."""
    (tmp_path / "server.py").write_text(SERVER)

    def start(program: str, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(native.folder("workloads") / "apps" / program), *words],
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "TMPDIR": str(temporary)},
            capture_output=True,
            text=True,
            timeout=60,
        )

    return start


@pytest.fixture
def begin(tmp_path: Path, run: Run, temporary: Path) -> Iterator[Begin]:
    """Starts a wrapper and does not wait for it."""
    begun: list[subprocess.Popen[bytes]] = []

    def start(program: str, *words: str) -> subprocess.Popen[bytes]:
        begun.append(
            subprocess.Popen(
                [str(native.folder("workloads") / "apps" / program), *words],
                cwd=tmp_path,
                env={"PATH": "/usr/bin:/bin", "TMPDIR": str(temporary)},
                stderr=subprocess.DEVNULL,
            )
        )
        return begun[-1]

    yield start
    for wrapper in begun:
        wrapper.kill()
        wrapper.wait()


def wait_until(happened: Callable[[], bool]) -> None:
    for _ in range(3000):
        if happened():
            return
        time.sleep(0.01)
    pytest.fail("it did not happen within half a minute")


def left(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "temporary").iterdir())


def test_a_server_is_started_loaded_and_stopped(run: Run, tmp_path: Path) -> None:
    done = run(
        "served", sys.executable, "server.py", "@folder",
        "--", "sh", "-c", "test -e started && sleep 0.1 && echo unheard",
        "--", "test", "-S", "@folder/socket",
        "--", "@idle", "0.1",
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
        (("@first", "true", "--", "true"), 2, "served: the load is missing; usage"),
        (("true", "--", "@untimed", "true"), 2, "served: the load is missing; usage"),
        (("true", "--", "@ready", "--", "true"), 2, "served: a command is empty; usage"),
        (("true", *["--", "true"] * 16), 2, "served: too many commands; usage"),
        (("@first", "false", "--", "true", "--", "true"), 1, "false ended with status 1"),
        (("sleep", "60", "--", "@ready", "no-such-program", "--", "true"), 1, "cannot execute no-such-program"),
        (("true", "--", "true", "--", "@idle", "x"), 2, "served: @idle takes seconds from 0 to 3600; usage"),
        (("true", "--", "true", "--", "@idle"), 2, "served: @idle takes seconds from 0 to 3600; usage"),
        (("false", "--", "true"), 1, "false ended before it was ready"),
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


def test_a_program_gets_a_folder_of_its_own_that_is_gone_afterwards(run: Run, tmp_path: Path, temporary: Path) -> None:
    done = run("in-folder", "sh", "-c", "mkdir -p $0/a/b && echo x >$0/a/b/c && echo $0 >folder", "@folder/x")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "folder").read_text().startswith(f"{temporary}/")
    assert left(tmp_path) == []
    assert run("in-folder", "sh", "-c", "exit 3").stderr == "sh ended with status 3\n"
    assert run("in-folder").returncode == 2
    assert left(tmp_path) == []


def test_what_runs_before_the_server_and_what_it_is_filled_with_do_not_count(run: Run, tmp_path: Path) -> None:
    began = time.monotonic()
    done = run(
        "served",
        "@first", "sh", "-c", "echo first >>course && sleep 0.3",
        "--", "sh", "-c", "echo server >>course && exec sleep 60",
        "--", "@ready", "sh", "-c", "echo ready >>course && test $(grep -c ready course) = 3",
        "--", "@untimed", "sh", "-c", "echo fill >>course && sleep 0.3",
        "--", "sh", "-c", "echo load >>course",
    )  # fmt: skip
    took = time.monotonic() - began
    assert (done.returncode, done.stderr) == (0, "")
    course = (tmp_path / "course").read_text().split()
    assert sorted(course) == sorted(["first", "server", "ready", "ready", "ready", "fill", "load"])
    assert [word for word in course if word != "server"] == ["first", "ready", "ready", "ready", "fill", "load"]
    assert course.index("server") > 0, "nobody waits for the first word of a server that is ready"
    said = json.loads(done.stdout)
    assert said["load_seconds"] == [pytest.approx(said["seconds"])]
    assert 0 < said["seconds"] < took - 2 * 0.3, "two sleeps of it were before the load"
    assert left(tmp_path) == []


STUBBORN = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nopen('ready', 'w')\ntime.sleep(600.5)"


@pytest.mark.usefixtures("heard_signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    "words",
    [
        ("in-folder", "sh", "-c", "touch $0/x ready; exec sleep 600.5", "@folder"),
        ("in-folder", sys.executable, "-c", STUBBORN),
        ("served", sys.executable, "server.py", "@folder", "--", "sh", "-c", "touch ready; exec sleep 600.5"),
        ("served", "@first", "sh", "-c", "touch ready; exec sleep 600.5", "--", "true", "--", "true"),
        ("served", sys.executable, "-c", STUBBORN, "--", "true"),
        ("served", sys.executable, "server.py", "@folder", "--", "touch", "ready", "--", "@idle", "600"),
    ],
    ids=["program", "stubborn-program", "load", "first", "stubborn-server", "idle"],
)
def test_whoever_ends_a_wrapper_ends_its_programs_and_its_folder(
    begin: Begin, tmp_path: Path, words: tuple[str, ...], number: signal.Signals
) -> None:
    wrapper = begin(*words)
    wait_until(lambda: (tmp_path / "ready").exists())
    wrapper.send_signal(number)
    assert wrapper.wait(20) == -number, "it ends as it was told to"
    assert left(tmp_path) == []
    assert not [path for path in Path("/proc").glob("[0-9]*") if same_folder(path, tmp_path)], "nothing is left running"


def same_folder(process: Path, folder: Path) -> bool:
    """Whether a living process runs in the folder."""
    try:
        return (process / "cwd").resolve(strict=True) == folder
    except OSError:
        return False


WHO = """
import json, os, pathlib
status = dict(line.split(":", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines() if ":" in line)
said = {"user": os.geteuid(), "rights": int(status["CapEff"], 16), "preload": os.environ.get("LD_PRELOAD")}
pathlib.Path(os.environ["FOLDER"], "new").write_text("")
pathlib.Path(os.environ["TOLD"]).write_text(json.dumps(said))
"""


@pytest.fixture
def who(tmp_path: Path) -> tuple[str, ...]:
    """A load that tells in ``told`` who it is, after it has written into the wrapper's folder."""
    (tmp_path / "who.py").write_text(WHO)
    return ("env", "FOLDER=@folder", f"TOLD={tmp_path}/told", "LD_PRELOAD=", sys.executable, "who.py")


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user has no root's powers to lay down")
def test_programs_that_are_never_root_lose_its_powers_and_read_what_it_may_read(
    run: Run, tmp_path: Path, who: tuple[str, ...]
) -> None:
    done = run("served", "--never-root", "sleep", "60", "--", "@ready", *who, "--", "test", "-r", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads((tmp_path / "told").read_text())
    assert said == {"user": NOBODY, "rights": 0, "preload": ""}
    assert left(tmp_path) == []


def test_who_is_not_root_stays_who_he_is(run: Run, tmp_path: Path, who: tuple[str, ...]) -> None:
    done = run("served", "sleep", "60", "--", "@ready", *who, "--", "true")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads((tmp_path / "told").read_text())["user"] == os.geteuid()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can lay down a machine that forbids namespaces")
def test_where_namespaces_are_forbidden_the_programs_become_another_user(open_folder: Path) -> None:
    """In a namespace whose root may make no more of them, with all users in it."""
    folder = Path(tempfile.mkdtemp(dir=open_folder))
    folder.chmod(0o777)
    (folder / "temporary").mkdir()
    wrapper = shutil.copy(native.folder("workloads") / "apps" / "served", folder)
    load = "id -u >told && test -O $0 && touch $0/new && ! test -r /proc/1/environ"
    inside = (
        'read go && exec sh -c "$@"',  # once more: only then is it the root that the map makes of it
        "sh", 'echo 0 >/proc/sys/user/max_user_namespaces && cd "$0" && exec "$@"', str(folder),
        wrapper, "--never-root", "sleep", "60", "--", "@ready", "true",
        "--", "sh", "-c", load, "@folder",
    )  # fmt: skip
    try:
        outer = subprocess.Popen(
            ["unshare", "--user", "sh", "-c", *inside],
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR": str(folder / "temporary")},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    except FileNotFoundError:
        pytest.skip("no unshare here")
    try:
        wait_until(lambda: other_namespace(outer.pid) or outer.poll() is not None)
        for kind in ("uid_map", "gid_map"):
            Path(f"/proc/{outer.pid}/{kind}").write_text("0 0 65536")
    except OSError as error:
        outer.kill()
        outer.communicate()
        pytest.skip(f"no user namespace with several users here: {error}")
    stdout, stderr = outer.communicate("go\n", timeout=30)
    if "max_user_namespaces" in stderr:
        pytest.skip("the number of namespaces cannot be limited here")
    assert (outer.returncode, stderr) == (0, "")
    assert json.loads(stdout)["seconds"] > 0
    assert (folder / "told").read_text() == f"{NOBODY}\n"
    assert list((folder / "temporary").iterdir()) == []


def other_namespace(process: int) -> bool:
    try:
        return os.readlink(f"/proc/{process}/ns/user") != os.readlink("/proc/self/ns/user")
    except OSError:
        return False


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
