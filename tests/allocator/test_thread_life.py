"""What a short thread's life takes is what the page says, and less than under glibc: counted by callgrind."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import thread_life

pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the page has x86-64 instructions"),
    pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind (package valgrind)"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler"),
    pytest.mark.xdist_group("measured"),
]

NEAR = 0.1
"""Other compilers and other versions of libc make somewhat other counts."""


def test_a_life_takes_what_the_page_says(freestone_library: Path, tmp_path: Path) -> None:
    program = thread_life.build(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "performance.md").read_text(encoding="utf-8")
    told = re.search(r"\*\*([\d,]+) instructions\*\*, glibc ([\d,]+)", page)
    assert told is not None, "docs/performance.md does not say what a life takes"
    ours = thread_life.of_a_life(program, str(freestone_library))
    assert ours == pytest.approx(int(told[1].replace(",", "")), rel=NEAR)
    assert ours < thread_life.of_a_life(program, thread_life.NONE)


@pytest.mark.parametrize("named", ["/nowhere", __file__, "{stops}"])
def test_what_cannot_be_counted_is_one_line(named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without its library the program would run, and glibc's count would stand under another's name."""
    stops = tmp_path / "stops.so"
    source = "#include <stdlib.h>\n__attribute__((constructor)) static void stop(void) { abort(); }"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", stops, "-"], input=source, check=True, text=True)
    named = named.format(stops=stops)
    assert thread_life.main([named]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("thread_life.py: ")
    assert said.err.count("\n") == 1
