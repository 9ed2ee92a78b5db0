"""Records are read where nothing native was installed, as on another system: docs/reference/platforms.md says so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from invented_results import make_results

import freestone


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the lab's Python and nothing else of it."""
    folder = tmp_path_factory.mktemp("site")
    ignored = shutil.ignore_patterns("_native", "__pycache__")
    shutil.copytree(Path(freestone.__file__).parent, folder / "freestone", ignore=ignored)
    return folder


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that was brought along."""
    return make_results().write(tmp_path_factory.mktemp("results") / "brought")


def lab(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A verb of the lab, seeing that site and the dependencies; ``-S`` keeps this tree out."""
    search = os.pathsep.join([str(site), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    command = [sys.executable, "-S", "-m", "freestone", *words]
    environment = {**os.environ, "PYTHONPATH": search}
    return subprocess.run(command, cwd=site, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("verb", ["report", "list", "diff"])
def test_records_are_read(verb: str, site: Path, results: Path) -> None:
    words = {"report": [str(results), "--no-html"], "list": [str(results.parent)], "diff": [str(results)] * 2}
    done = lab(site, verb, *words[verb])
    assert (done.returncode, done.stderr) == (0, "")
    assert "glibc" in done.stdout


@pytest.mark.parametrize("words", [["run", "--", "true"], ["compare", "-n", "1", "--", "true"]])
def test_what_needs_native_parts_says_so(words: list[str], site: Path) -> None:
    done = lab(site, *words)
    assert done.returncode != 0
    assert "is not installed; run 'make build' or reinstall freestone" in done.stderr
    assert done.stderr.count("\n") == 1
