"""The command line tool as its users have it: a process with arguments, streams and an exit status."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from freestone import native

Tool = Callable[..., subprocess.CompletedProcess[str]]
Interrupt = Callable[[list[str], Path], None]


@pytest.fixture(scope="session", autouse=True)
def native_parts() -> None:
    """The verbs run real programs under real allocators."""
    for part in ("libfreestone.so", "freestone-launch", "freestone-escort", "libfreestone-witness.so"):
        try:
            native.path(part)
        except native.NativePartMissing as error:
            pytest.fail(str(error))


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment in which nothing of the person who runs the tests is left."""
    return clean_environment(tmp_path / "home")


def clean_environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "LANG", "TMPDIR")}
    return {**kept, "HOME": str(home), "COLUMNS": "100", "TERM": "xterm", "LC_ALL": "C.UTF-8"}


@pytest.fixture
def command() -> list[str]:
    """What starts the tool."""
    return [sys.executable, "-m", "freestone"]


READ_AT_THE_START = ("PYTHON", "LC_", "LANG", "LD_")
"""How variables begin that only a process of its own reads: Python's, the C library's, the loader's."""


class ForkedTool:
    """Calls of the tool in processes forked from one that has imported it: half a second less for each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = clean_environment(folder)
        self.count = 0
        self.server = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("forked_tool.py"))],
            env={**self.environment, "OPENBLAS_NUM_THREADS": "1"},  # a process of several threads cannot be forked
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def fits(self, environment: Mapping[str, str]) -> bool:
        """Whether a call with this environment differs in nothing that is read before it begins."""
        names = {name for name in {*environment, *self.environment} if name.startswith(READ_AT_THE_START)}
        return all(environment.get(name) == self.environment.get(name) for name in names)

    def call(
        self, words: Sequence[str], cwd: str | Path, env: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        self.count += 1
        streams = [self.folder / f"{self.count}.{name}" for name in ("stdout", "stderr")]
        for stream in streams:
            stream.touch()
        request = {"words": list(words), "folder": str(cwd), "environment": dict(env)}
        files = {"stdout": str(streams[0]), "stderr": str(streams[1])}
        assert self.server.stdin is not None
        print(json.dumps({**request, **files}), file=self.server.stdin, flush=True)
        process = self.answer()
        limit = threading.Timer(timeout, os.kill, (process, signal.SIGKILL))
        limit.start()
        status = self.answer()
        if limit.finished.is_set() and status == -signal.SIGKILL:
            raise subprocess.TimeoutExpired(list(words), timeout)
        limit.cancel()
        stdout, stderr = (stream.read_text(encoding="utf-8") for stream in streams)
        return subprocess.CompletedProcess(list(words), status, stdout, stderr)

    def answer(self) -> int:
        assert self.server.stdout is not None
        line = self.server.stdout.readline()
        assert line, "the process that forks the tool has ended"
        return int(line)

    def end(self) -> None:
        assert self.server.stdin is not None
        self.server.stdin.close()
        self.server.wait()


@pytest.fixture(scope="session")
def forked_tool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedTool]:
    tool = ForkedTool(tmp_path_factory.mktemp("forked-tool"))
    yield tool
    tool.end()


@pytest.fixture
def freestone(tmp_path: Path, environment: dict[str, str], command: list[str], forked_tool: ForkedTool) -> Tool:
    """``freestone("compare", ...)`` runs the tool to its end in an empty folder.

    In a forked process, where no test can tell it from one that was started; ``test_started.py`` starts every verb.
    """

    def run(
        *arguments: str | Path, env: Mapping[str, str] | None = None, timeout: float = 120, **more: object
    ) -> subprocess.CompletedProcess[str]:
        words = [str(word) for word in arguments]
        whole = {**environment, **(env or {})}
        done: subprocess.CompletedProcess[str]
        if more.keys() <= {"cwd"} and forked_tool.fits(whole):
            done = forked_tool.call(words, str(more.get("cwd", tmp_path)), whole, timeout)
        else:
            done = subprocess.run(  # type: ignore[call-overload]
                [*command, *words],
                env=whole,
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
def interrupt(heard_signals: None, environment: dict[str, str]) -> Interrupt:
    """``interrupt(words, file)`` runs a command, sends Ctrl-C once the file is there, and expects that it says so."""

    def run(words: list[str], file: Path) -> None:
        process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            until = time.monotonic() + 120
            while not file.exists() and time.monotonic() < until:
                time.sleep(0.005)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=120)
        finally:
            process.kill()
        assert process.returncode == 130, said
        assert said.splitlines()[-1].startswith("freestone: interrupted; ")

    return run
