"""The recipes of the guide run as they stand, with shorter loads and on ports that are free."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from freestone.records import store

NEEDED = {
    "Redis": ["redis-server", "redis-benchmark", "redis-cli"],
    "PostgreSQL": ["/usr/lib/postgresql/*/bin/initdb", "/usr/lib/postgresql/*/bin/pgbench"],
    "nginx": ["nginx", "wrk", "curl"],
    "A threaded Python server": ["wrk", "curl"],
}
SHORTER = {"-n 200000": "-n 20000", "-T 10": "-T 1", "-d 10s": "-d 1s"}
TOLD = {"Redis": "p999_seconds", "PostgreSQL": "mean_seconds", "nginx": "p99_seconds"}


@pytest.fixture
def folder() -> Iterator[Path]:
    """Whose path is short enough for a socket, and where other users may come in."""
    with tempfile.TemporaryDirectory(prefix="fs-") as made:
        Path(made).chmod(0o777)
        yield Path(made)


def recipe(repository: Path, title: str) -> str:
    page = (repository / "docs" / "guide" / "service.md").read_text()
    found = re.search(rf"### {re.escape(title)}\n+```sh\n(.*?)```", page, re.DOTALL)
    assert found, f"the guide has no recipe for {title}"
    return found[1]


def free_port() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return str(taken.getsockname()[1])


def as_test(script: str) -> str:
    """The recipe with one round of two allocators, short loads and a free port."""
    (port,) = set(re.findall(r"\b700[0-9]\b", script))
    script = script.replace(port, free_port()).replace("python3 server.py", f"{sys.executable} server.py")
    for long, short in SHORTER.items():
        script = script.replace(long, short)
    measure = f"{sys.executable} -m freestone compare -a glibc,freestone -n 1 --no-report --json"
    return "set -e\n" + script.replace("freestone compare", measure)


def not_by_root(script: str, folder: Path) -> str:
    """PostgreSQL will not be run by root, and its folder belongs to whoever runs it."""
    if os.getuid() != 0:
        return script
    if shutil.which("setpriv") is None:
        pytest.skip("root, and no setpriv (Debian: util-linux)")
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    user = f"setpriv --reuid={nobody.pw_uid} --regid={nobody.pw_gid} --clear-groups"
    return re.sub(r"^(initdb|pg_ctl)\b|(?<= -- )(postgres)\b", rf"{user} \g<0>", script, flags=re.MULTILINE)


@pytest.mark.parametrize(
    "title", [pytest.param(each, marks=[] if each == "nginx" else pytest.mark.long) for each in NEEDED]
)
def test_a_recipe(title: str, folder: Path, tree_for_all: Path, environment: Mapping[str, str]) -> None:
    missing = [name for name in NEEDED[title] if not (shutil.which(name) or list(Path("/").glob(name.lstrip("/"))))]
    if missing:
        pytest.skip(f"not here: {', '.join(missing)}")
    script = as_test(recipe(tree_for_all, title))
    (folder / "recipe.sh").write_text(not_by_root(script, folder) if title == "PostgreSQL" else script)
    done = subprocess.run(
        ["sh", "recipe.sh"],
        cwd=folder,
        env={**environment, "HOME": str(folder), "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    summary = json.loads(done.stdout[done.stdout.index("{") :])
    assert {cell["status"] for cell in summary["cells"]} == {"ok"}
    (results,) = (folder / "results").iterdir()
    for record in store.read_trials(results).records:
        assert record.proof.valid
        assert record.figures is not None
        assert record.figures["seconds"] > 0
        assert record.figures["rss_kib_loaded"] > 1000
        assert TOLD.get(title, "p50_seconds") in record.figures
        assert record.metrics is not None
        assert len(record.metrics.series) > 10, "its memory over time"


def test_a_port_in_use_is_found_out_and_not_measured(
    folder: Path, repository: Path, environment: Mapping[str, str]
) -> None:
    if not all(shutil.which(name) for name in NEEDED["Redis"]):
        pytest.skip("no Redis here")
    script = as_test(recipe(repository, "Redis"))
    port = re.findall(r"--port ([0-9]+)", script)[0]
    (folder / "recipe.sh").write_text(script)
    other = subprocess.Popen(["redis-server", "--port", port, "--save", ""], cwd=folder, stdout=subprocess.DEVNULL)
    try:
        for _ in range(100):
            if subprocess.run(["redis-cli", "-p", port, "ping"], capture_output=True, check=False).returncode == 0:
                break
        done = subprocess.run(
            ["sh", "recipe.sh"], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
        )
    finally:
        other.kill()
        other.wait()
    assert done.returncode == 3
    assert "succeeds before the server is started: another one answers there" in done.stderr
