"""CPython's own tests come out the same under libfreestone, test by test, with every object on the heap under test."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

VERDICT = re.compile(r"^(test\w+) \((\S+)\).*?\.\.\. .*?(ok|skipped .*|FAIL|ERROR|expected failure)$", re.MULTILINE)


def verdicts(stderr: bytes) -> dict[str, str]:
    """Test -> what unittest said of it. A test with a docstring has its verdict on the next line."""
    text = stderr.decode(errors="replace")
    text = re.sub(r"\n(?=[^\n]*\.\.\. )(?!test\w+ \()", " ", text)
    return {f"{owner}.{name}": verdict for name, owner, verdict in VERDICT.findall(text)}


FORKS = ("test_subprocess.POSIXProcessTestCase", "test_subprocess.ContextManagerTests", "test_subprocess.MiscTests")
"""Of test_subprocess, what forks, runs others and closes what they inherit. The rest waits for limits of time, or does
the same by another call: `make foreign` runs it whole."""

SUITES = {
    "test_json": ("test_json",),
    "test_dict": ("test_dict",),
    "test_threading": ("test_threading",),
    "test_subprocess": FORKS,
    "test_posix": ("test_posix",),
    "test_weakref": ("test_weakref",),
}
"""Those that go by no clock; `make foreign` has more, `make soak` all."""


@pytest.mark.long
@pytest.mark.parametrize("parts", SUITES.values(), ids=SUITES)
def test_its_own_tests_come_out_the_same(parts: tuple[str, ...], bench: Any, python_with_tests: str) -> None:
    def work(folder: Path, served: bool) -> Any:
        # Without pymalloc, so that every object is a block of the allocator's.
        extra = {"PYTHONMALLOC": "malloc", "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(folder)}
        command = [python_with_tests, "-m", "unittest", "-v", *(f"test.{part}" for part in parts)]
        # 1: some test failed. Where one does on this machine whatever the allocator, it has to fail here as well.
        return bench.one(command, folder, served=served, extra=extra, statuses=(0, 1))

    system, served = bench.both(work, [Path(python_with_tests).name])
    expected = verdicts(system.stderr)
    assert len(expected) > 50, "unittest's report was not understood"
    assert verdicts(served.stderr) == expected
    assert served.status == system.status
