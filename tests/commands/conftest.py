"""The command line tool as its users have it: a process with arguments, streams and an exit status."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from freestone import native

Tool = Callable[..., subprocess.CompletedProcess[str]]
Interrupt = Callable[[list[str], Path], None]


@pytest.fixture(scope="session", autouse=True)
def native_parts() -> None:
    """The verbs run real programs under real allocators."""
    for part in ("libfreestone.so", "freestone-launch", "libfreestone-witness.so"):
        try:
            native.path(part)
        except native.NativePartMissing as error:
            pytest.fail(str(error))


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment in which nothing of the person who runs the tests is left."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "LANG", "TMPDIR")}
    return {**kept, "HOME": str(tmp_path / "home"), "COLUMNS": "100", "TERM": "xterm", "LC_ALL": "C.UTF-8"}


@pytest.fixture
def command() -> list[str]:
    """What starts the tool."""
    return [sys.executable, "-m", "freestone"]


@pytest.fixture
def freestone(tmp_path: Path, environment: dict[str, str], command: list[str]) -> Tool:
    """``freestone("compare", ...)`` runs the tool to its end in an empty folder."""

    def run(
        *arguments: str, env: Mapping[str, str] | None = None, timeout: float = 120, **more: object
    ) -> subprocess.CompletedProcess[str]:
        done: subprocess.CompletedProcess[str] = subprocess.run(  # type: ignore[call-overload]
            [*command, *arguments],
            env={**environment, **(env or {})},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=timeout,
            **{"cwd": tmp_path, **more},
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    return run


@pytest.fixture
def compile_c(tmp_path: Path) -> Callable[..., Path]:
    """``compile_c(source, "-static", ...)`` gives the path of the program; skips where there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler here")

    def build(source: str, *flags: str, name: str = "program") -> Path:
        target = tmp_path / name
        words: Sequence[str] = [compiler, "-x", "c", "-", "-O1", "-o", str(target), *flags]
        done = subprocess.run(words, input=source, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"cannot compile {' '.join(flags)} here: {done.stderr.strip().splitlines()[-1]}")
        return target

    return build


@pytest.fixture
def only_folder(tmp_path: Path) -> Callable[[], Path]:
    """The one results folder that a run has made."""

    def find() -> Path:
        (folder,) = (tmp_path / "results").iterdir()
        return folder

    return find


@pytest.fixture
def interrupt(heard_signals: None) -> Interrupt:
    """``interrupt(words, file)`` runs a command, sends Ctrl-C once the file is there, and expects that it says so."""

    def run(words: list[str], file: Path) -> None:
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            until = time.monotonic() + 120
            while not file.exists() and time.monotonic() < until:
                time.sleep(0.005)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=120)
        finally:
            process.kill()
        assert process.returncode == 130, said
        assert said.splitlines()[-1] == "freestone: interrupted"

    return run
