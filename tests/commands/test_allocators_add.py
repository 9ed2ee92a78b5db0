"""``freestone allocators add`` and ``remove``: what they print, how they end, what an interrupt leaves."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from freestone.allocators import peers

Tool = Callable[..., subprocess.CompletedProcess[str]]


def programs(tmp_path: Path, **scripts: str) -> str:
    """A PATH with these programs and nothing else but what scripts need."""
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    for name, script in scripts.items():
        (folder / name).write_text(f"#!{shutil.which('sh')}\n{script}\n")
        (folder / name).chmod(0o755)
    for name in ("sh", "sleep", "touch", "rm"):
        link = folder / name
        if not link.exists():
            link.symlink_to(shutil.which(name) or f"/bin/{name}")
    return str(folder)


BUILD_TOOLS = dict.fromkeys(("cc", "c++", "make", "cmake"), "exit 0")


def cache(tmp_path: Path) -> list[str]:
    folder = tmp_path / "home" / ".cache" / "freestone" / "peers"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def test_what_can_be_had_is_shown_with_its_version_and_how(freestone: Tool) -> None:
    done = freestone("allocators", "--no-verify", env={"COLUMNS": "200"})
    assert done.returncode == 0
    assert done.stderr == ""
    here, _, absent = done.stdout.partition("not here")
    assert re.search(r"^freestone +\S+ +not tried ", here, re.MULTILINE)
    for name, peer in peers.load().items():
        told = (
            rf"^{re.escape(name)} +{re.escape(peer.version)} is not built; freestone allocators add {peer.project} *$"
        )
        assert re.search(told, absent, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["add", "jemaloc"], "no allocator that can be built is called 'jemaloc'; did you mean jemalloc"),
        (["remove"], "'allocators remove' takes names; 'freestone allocators remove all' removes every one"),
        (["remove", ","], "'allocators remove' takes names"),
        (["grow"], "unknown allocator 'grow'"),
        (["add", "--verify"], "see freestone allocators add --help"),
        (["remove", "all", "--json"], "see freestone allocators remove --help"),
        (["add", "--jobs", "0", "rpmalloc"], "--jobs takes a number from 1 up, not 0"),
    ],
)
def test_wrong_use_is_one_line(freestone: Tool, arguments: list[str], told: str) -> None:
    done = freestone("allocators", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert told in done.stderr


def test_missing_tools_are_named_once_with_their_peers_and_a_remedy(freestone: Tool, tmp_path: Path) -> None:
    done = freestone("allocators", "add", env={"PATH": programs(tmp_path)})
    assert done.returncode == 3
    lines = done.stderr.splitlines()
    assert len(lines) == 5
    assert re.match(r"freestone: no cmake: snmalloc cannot be added; install", next(x for x in lines if "cmake" in x))
    compiler = next(x for x in lines if "C++ compiler" in x)
    assert "jemalloc5, snmalloc, tcmalloc-google, hardened_malloc cannot be added" in compiler
    assert cache(tmp_path) == []


def test_without_a_network_the_others_are_not_tried_one_by_one(freestone: Tool, tmp_path: Path) -> None:
    said = "echo 'error: failed'; echo 'Caused by:'; echo '[6] Could not resolve host'"
    cargo = f"touch {tmp_path}/asked-$$; {said}; exit 101"
    done = freestone(
        "allocators",
        "add",
        "rpmalloc",
        "snmalloc",
        "mimalloc",
        env={"PATH": programs(tmp_path, cargo=cargo, **BUILD_TOOLS)},
    )
    assert done.returncode == 3
    assert len(list(tmp_path.glob("asked-*"))) == 1
    assert "libmimalloc-sys 0.1.49 cannot be fetched, the registry is not reached: [6] Could not resolve" in done.stderr
    assert "not tried, as they have to be fetched too: mimalloc3, snmalloc, rpmalloc" in done.stderr


def test_one_that_cannot_be_fetched_does_not_stop_the_others(freestone: Tool, tmp_path: Path) -> None:
    cargo = f"touch {tmp_path}/asked-$$; echo 'error: no matching package named `x` found'; exit 101"
    done = freestone("allocators", "add", "mimalloc", env={"PATH": programs(tmp_path, cargo=cargo, **BUILD_TOOLS)})
    assert done.returncode == 3
    assert done.stderr.count("cannot be fetched: no matching package named `x` found; full log: ") == 2
    assert len(list(tmp_path.glob("asked-*"))) == 2
    log = re.search(r"full log: (\S+)", done.stderr)
    assert log
    assert "no matching package" in Path(log[1]).read_text()


def test_a_cache_that_cannot_be_written_is_one_line(freestone: Tool, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = programs(tmp_path, cargo="exit 1", **BUILD_TOOLS)
    done = freestone("allocators", "add", "rpmalloc", env={"XDG_CACHE_HOME": str(tmp_path / "file"), "PATH": path})
    assert done.returncode == 5
    assert done.stderr.count("\n") == 1
    assert "is no folder; set XDG_CACHE_HOME to a folder that you can write to" in done.stderr


def assert_ends(process: int) -> None:
    """The process is gone within seconds, or is only waited for by whoever inherited it."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state in "ZX":
            return
        time.sleep(0.05)
    raise AssertionError(f"process {process} goes on")


@pytest.mark.usefixtures("heard_signals")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_ends_the_build_and_leaves_nothing(
    command: list[str], environment: dict[str, str], tmp_path: Path, number: signal.Signals, status: int
) -> None:
    cargo = f"echo $$ > {tmp_path}/cargo.tmp; sleep 60"
    path = programs(tmp_path, cargo=cargo, **BUILD_TOOLS)
    tool = subprocess.Popen(
        [*command, "allocators", "add", "rpmalloc"],
        env={**environment, "PATH": path},
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (tmp_path / "cargo.tmp").exists() or not (tmp_path / "cargo.tmp").read_text():
        assert tool.poll() is None
        time.sleep(0.01)
    tool.send_signal(number)
    _, said = tool.communicate(timeout=30)
    assert tool.returncode == status
    assert "interrupted; 0 of 1 allocators are there, add the others with the same command" in said
    assert "Traceback" not in said
    assert cache(tmp_path) == ["rpmalloc.log"]
    assert_ends(int((tmp_path / "cargo.tmp").read_text()))


@pytest.mark.long
def test_a_peer_from_the_registry_is_added_compared_and_removed(freestone: Tool, tmp_path: Path) -> None:
    if shutil.which("cargo") is None:
        pytest.skip("no cargo: nothing can be fetched")
    settings = {"CARGO_HOME": str(tmp_path / "cargo"), "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", rustup())}
    added = freestone("allocators", "add", "rpmalloc", env=settings, timeout=300)
    if "the registry is not reached" in added.stderr:
        pytest.skip(f"the registry is not reached: {added.stderr.strip()}")
    assert added.returncode == 0, added.stderr
    assert re.search(r"rpmalloc 1\.4\.3: built in \d+ s, verified: /", added.stderr)
    again = freestone("allocators", "add", "rpmalloc", "--json", env={"PATH": os.environ["PATH"]})
    assert "rpmalloc 1.4.3: there already, verified: " in again.stderr
    (row,) = json.loads(again.stdout)
    assert Path(row["file"]).is_file()

    (listed,) = json.loads(freestone("allocators", "rpmalloc", "--json").stdout)
    assert listed["working"] == {"verified": True, "reason": None}
    assert listed["origin"] == "built from rpmalloc-sys 0.2.3"

    program = [sys.executable, "-I", "-S", "-c", "print(len([str(n) for n in range(100000)]))"]
    done = freestone("compare", "-a", "rpmalloc", "-n", "2", "--no-report", "--json", "--", *program)
    assert done.returncode == 0, done.stderr
    cells = {cell["configuration"]: cell["status"] for cell in json.loads(done.stdout)["cells"]}
    assert cells["rpmalloc"] == "ok"

    removed = freestone("allocators", "remove", "rpmalloc")
    assert removed.returncode == 0
    assert "rpmalloc: removed" in removed.stderr
    assert cache(tmp_path) == []
    gone = freestone("compare", "-a", "rpmalloc", "--", *program)
    assert gone.returncode == 2
    assert "not built; freestone allocators add rpmalloc" in gone.stderr


def rustup() -> str:
    """Where rustup has its toolchains, which the tests' own HOME would hide."""
    return str(Path.home() / ".rustup")
