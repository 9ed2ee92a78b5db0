"""A doctor that traces a running program is ended, in any way: the program is let go at once, and goes on."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import soon

WITHIN_S = 5.0
MAPPING = "import mmap, time\nwhile True:\n    mmap.mmap(-1, 1 << 20).close()\n    time.sleep(0.001)"

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="the doctor traces by strace")


@pytest.fixture
def program() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", MAPPING]) as process:
        try:
            yield process
        finally:
            process.kill()


def _tracer(process: subprocess.Popen[bytes]) -> int:
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("TracerPid:")).split()[1])


def _used_ticks(process: subprocess.Popen[bytes]) -> int:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


@pytest.fixture
def words(command: list[str], program: subprocess.Popen[bytes]) -> list[str]:
    return [*command, "doctor", "--pid", str(program.pid), "--allow-tracing", "--seconds"]


@contextlib.contextmanager
def _tracing(
    words: list[str], program: subprocess.Popen[bytes], environment: dict[str, str], temporary: Path
) -> Iterator[subprocess.Popen[str]]:
    """A doctor that has begun to trace, and would go on for some seconds."""
    said = subprocess.PIPE
    given = {**environment, "TMPDIR": str(temporary)}
    with subprocess.Popen(
        [*words, "3"], cwd=temporary.parent, env=given, stdout=said, stderr=said, text=True, start_new_session=True
    ) as doctor:
        try:
            assert soon(lambda: _tracer(program) != 0 or doctor.poll() is not None, 60)
            assert doctor.poll() is None, doctor.stderr and doctor.stderr.read()
            yield doctor
        finally:
            doctor.kill()


def _is_let_go(program: subprocess.Popen[bytes]) -> None:
    assert soon(lambda: _tracer(program) == 0, WITHIN_S), "it is still traced"
    before = _used_ticks(program)
    assert soon(lambda: _used_ticks(program) > before, WITHIN_S), "it does not run"
    assert program.poll() is None


@pytest.mark.long
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        *(pytest.param(each, marks=pytest.mark.long) for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)),
    ],
)
def test_told_to_stop_it_lets_go_and_says_what_it_saw(
    number: signal.Signals,
    words: list[str],
    program: subprocess.Popen[bytes],
    environment: dict[str, str],
    temporary: Path,
    heard_signals: None,
) -> None:
    with _tracing(words, program, environment, temporary) as doctor:
        doctor.send_signal(number)
        out, errors = doctor.communicate(timeout=60)
    assert doctor.returncode == 128 + number, errors
    (folder,) = (temporary.parent / "results").iterdir()
    assert (
        errors.splitlines()[-1] == f"freestone: interrupted; what was seen until then is kept in results/{folder.name}"
    )
    assert "calls: interrupted" in " ".join(out.split())
    _is_let_go(program)
    assert list(temporary.iterdir()) == []


@pytest.mark.long
def test_killed_it_lets_go_and_the_next_one_clears_up(
    words: list[str], program: subprocess.Popen[bytes], environment: dict[str, str], temporary: Path
) -> None:
    with _tracing(words, program, environment, temporary) as doctor:
        doctor.kill()
        doctor.wait()
        _is_let_go(program)
    (left,) = temporary.iterdir()
    assert left.name.startswith(f"freestone-{doctor.pid}-")
    size = sum(file.stat().st_size for file in left.iterdir())
    time.sleep(0.2)
    assert sum(file.stat().st_size for file in left.iterdir()) == size, "nobody writes there any more"
    long_ago = time.time() - 7200
    os.utime(left, (long_ago, long_ago))
    given = {**environment, "TMPDIR": str(temporary)}
    subprocess.run([*words, "0.1"], cwd=temporary.parent, env=given, capture_output=True, timeout=60, check=True)
    assert list(temporary.iterdir()) == []
    _is_let_go(program)
