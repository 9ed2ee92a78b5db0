"""A lab whose path holds a space says that its library cannot be preloaded; it starts nothing that goes unserved."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import freestone
from freestone import native

TOLD = "libfreestone.so cannot be preloaded: its path holds a space or a colon; install freestone into a folder without"
PARTS = ("libfreestone.so", "libfreestone-witness.so", "freestone-launch", "freestone-escort")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("my site")
    ignored = shutil.ignore_patterns("_native", "__pycache__")
    shutil.copytree(Path(freestone.__file__).parent, folder / "my site" / "freestone", ignore=ignored)
    (folder / "my site" / "freestone" / "_native").mkdir()
    for part in PARTS:
        shutil.copy(native.path(part), folder / "my site" / "freestone" / "_native")
    return folder / "my site"


def lab(site: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    search = os.pathsep.join([str(site), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    environment = {**os.environ, "PYTHONPATH": search, "HOME": str(folder)}
    return subprocess.run(
        [sys.executable, "-S", "-m", "freestone", *words], cwd=folder, env=environment, capture_output=True, text=True
    )


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["run", "--", "echo", "started"], 3),
        (["run", "-a", "freestone", "--", "echo", "started"], 2),
        (["run", "--print", "shell"], 2),
        (["compare", "-a", "freestone", "-n", "1", "--", "echo", "started"], 2),
    ],
)
def test_what_would_preload_it_is_one_line(site: Path, tmp_path: Path, words: list[str], status: int) -> None:
    done = lab(site, tmp_path, *words)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.strip().endswith(TOLD)
    assert done.stderr.count("\n") == 1


def test_a_comparison_of_all_that_is_here_says_who_is_left_out(site: Path, tmp_path: Path) -> None:
    done = lab(site, tmp_path, "compare", "-n", "1", "--no-report", "--", "true")
    assert done.returncode == 0, done.stderr
    assert f"freestone: freestone is left out: {site}" in done.stderr
    assert TOLD in done.stderr
    assert "glibc" in done.stdout
