"""What the tests of this room share: small C programs compiled on the spot, and trials of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from freestone.allocators import configuration_for, find
from freestone.records.schema import Configuration, Input, Stages, TrialRecord, Workload
from freestone.trials import Identity, permissions, rehearse, run_trial
from freestone.trials.launch import LaunchReading, LaunchRequest, launch

CompileC = Callable[..., Path]
Launch = Callable[..., LaunchReading]
Try = Callable[..., TrialRecord]


@pytest.fixture
def compile_c(tmp_path: Path) -> CompileC:
    """Compiles C source into a program (or with ``-shared`` a library) in the test's folder."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler (cc, gcc or clang) to build the test's program with")

    def build(source: str, *flags: str, name: str = "program", compiler: str = compiler) -> Path:
        file, product = tmp_path / f"{name}.c", tmp_path / name
        file.write_text("#define _GNU_SOURCE\n" + source)
        words = [compiler, "-O1", "-w", "-o", str(product), str(file), *flags]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return product

    return build


@pytest.fixture
def static_flag(compile_c: CompileC) -> str:
    """``-static``, where a static C library is installed."""
    try:
        compile_c("int main(void) { return 0; }", "-static", name="static-probe")
    except AssertionError:
        pytest.skip("no static C library (libc.a) to link the test's program with")
    return "-static"


@pytest.fixture
def run(tmp_path: Path) -> Launch:
    """Runs a command through the launcher alone; keywords are those of LaunchRequest."""

    def start(*command: object, **options: object) -> LaunchReading:
        request = LaunchRequest(
            command=[str(word) for word in command],
            result=tmp_path / "result.json",
            stdout=tmp_path / "stdout",
            stderr=tmp_path / "stderr",
            **options,  # type: ignore[arg-type]
        )
        return launch(request)

    return start


@pytest.fixture
def glibc() -> Configuration:
    return configuration_for(find(["glibc"])[0])


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder every user may enter, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="freestone-test-"))
    folder.chmod(0o755)
    yield folder
    assert list(folder.iterdir()) == [], "a trial leaves its scratch folder as it was"
    folder.rmdir()


@pytest.fixture
def attempt(glibc: Configuration, scratch: Path) -> Try:
    """Runs a command as a trial, under glibc unless told otherwise."""

    def go(
        *command: object,
        configuration: Configuration = glibc,
        timeout_s: float | None = 60,
        environment: dict[str, str] | None = None,
        directory: str | None = None,
        rest_s: int | None = None,
        stages: Stages | None = None,
        input: Input | None = None,
        **options: object,
    ) -> TrialRecord:
        workload = Workload(
            name="test",
            command=[str(word) for word in command],
            environment=environment or {},
            directory=directory,
            rest_s=rest_s,
            stages=stages or Stages(),
            input=input,
        )
        if not permissions().perf and "rehearsal" not in options:
            # What an experiment does where the kernel refuses a census inside the trial.
            options["rehearsal"] = rehearse(workload, configuration, timeout_s=timeout_s, scratch=scratch)
        return run_trial(
            workload,
            configuration,
            identity=Identity("test"),
            timeout_s=timeout_s,
            scratch=scratch,
            **options,  # type: ignore[arg-type]
        )

    return go


@pytest.fixture
def needs_perf() -> None:
    if not permissions().perf:
        pytest.skip(f"no census inside a trial on this machine: {permissions().perf_reason}")


@pytest.fixture
def needs_ptrace() -> None:
    if not permissions().ptrace:
        pytest.skip(f"no rehearsal on this machine: {permissions().ptrace_reason}")


@pytest.fixture
def needs_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a setuid program of another user, or become another user")
