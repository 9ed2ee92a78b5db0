"""Without the extras there is no HTML page and no Parquet file; everything else is as it was, and one line says so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from freestone.records import parquet
from freestone.reports import extras

FIGURES = "the figures need: pip install '.[figures]' in the clone"

WITHOUT = """
import sys
for name in {libraries!r}:
    sys.modules[name] = None  # as if it were not installed
from freestone.cli import main
main({words!r})
"""
"""The tool in a process in which some libraries cannot be imported."""


def run(tmp_path: Path, environment: dict[str, str], *words: str | Path) -> subprocess.CompletedProcess[str]:
    libraries = [*extras.LIBRARIES, "duckdb", "pandas", "numpy"]
    code = WITHOUT.format(libraries=libraries, words=[str(word) for word in words])
    return subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )


@pytest.fixture
def compared(tmp_path: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    words = ("compare", "-a", "glibc", "--rounds", "2", "--results", "r", "--", "echo", "done")
    return run(tmp_path, environment, *words)


def test_a_comparison_needs_none_of_them(compared: subprocess.CompletedProcess[str], tmp_path: Path) -> None:
    assert compared.returncode == 0, compared.stderr
    assert "Traceback" not in compared.stderr
    assert "glibc" in compared.stdout
    (folder,) = (tmp_path / "r").iterdir()
    assert {path.name for path in folder.iterdir()} == {"experiment.json", "trials.jsonl", "summary.json"}
    told = compared.stderr.splitlines()
    assert told.count(f"freestone: no report.html: {FIGURES}") == 1
    assert told.count("freestone: no trials.parquet: it needs: pip install '.[parquet]' in the clone") == 1


@pytest.mark.long
def test_a_report_without_them_is_its_tables(
    compared: subprocess.CompletedProcess[str], tmp_path: Path, environment: dict[str, str]
) -> None:
    (folder,) = (tmp_path / "r").iterdir()
    done = run(tmp_path, environment, "report", folder)
    assert done.returncode == 5
    assert "glibc" in done.stdout
    assert done.stderr == f"freestone: no report: {FIGURES}\n"
    told = run(tmp_path, environment, "report", folder, "--json")
    assert json.loads(told.stdout)[0]["baseline"] == "glibc"


@pytest.mark.long
def test_a_diagnosis_without_them_is_what_the_terminal_shows(tmp_path: Path, environment: dict[str, str]) -> None:
    done = run(tmp_path, environment, "doctor", "--observe-only", "--results", "r", "--", "sleep", "0.3")
    assert done.returncode == 0, done.stderr
    assert f"freestone: no report.html: {FIGURES}" in done.stderr.splitlines()
    (folder,) = (tmp_path / "r").iterdir()
    again = run(tmp_path, environment, "report", folder)
    assert again.returncode == 5
    assert again.stderr == f"freestone: no report: {FIGURES}\n"
    assert again.stdout.splitlines()[0] == done.stdout.splitlines()[0]


def test_a_notebook_is_told_what_it_lacks(tmp_path: Path, environment: dict[str, str]) -> None:
    code = "import sys; sys.modules['pandas'] = None; import freestone; freestone.load('results')"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stderr.splitlines()[-1].endswith("data frames need: pip install '.[notebook]' in the clone")


def test_here_all_of_them_are_there() -> None:
    assert extras.missing() is None
    assert parquet.missing() is None


def test_an_order_for_dask_is_told_what_it_lacks(tmp_path: Path, environment: dict[str, str]) -> None:
    words = ["compare", "--on", "dask:127.0.0.1:1", "-n", "1", "-a", "glibc", "--", "true"]
    code = f"import sys; sys.modules['distributed'] = None\nfrom freestone.cli import main\nmain({words!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 3, done.stderr
    assert ": Dask needs: pip install '.[dask]' in the clone" in done.stderr
