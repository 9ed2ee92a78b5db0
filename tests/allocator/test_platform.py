"""For what is no 64-bit Linux, compilers and CMake end with one clear line, and not with a flood."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

NEEDS = "Freestone needs a 64-bit Linux"
OF_32_BITS = ["-m32"] if platform.machine() == "x86_64" else ["-U__LP64__"]
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)] or ["cc"]
SHOWN = "freestone.h"
HEADERS_AND_SOURCES = [SHOWN, "bits.h", "os.c"]


def errors_of(compiler: str, repository: Path, name: str, *options: str) -> list[str]:
    """The lines with errors of compiling a header or source of the allocator; nothing is written."""
    allocator = repository / "allocator"
    file = allocator / ("include" if name == SHOWN else "src") / name
    command = [compiler, "-std=gnu17", "-D_GNU_SOURCE", "-fsyntax-only", "-x", "c", *options, str(file)]
    command.append(f"-I{allocator / 'include'}")
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    assert (done.returncode == 0) == ("error:" not in done.stderr)
    return [line for line in done.stderr.splitlines() if "error:" in line]


@pytest.mark.parametrize("name", HEADERS_AND_SOURCES)
@pytest.mark.parametrize("options", [OF_32_BITS, ["-U__linux__"]], ids=["32_bits", "another_system"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_compiler_for_another_system_says_so_and_no_more(
    compiler: str, options: list[str], name: str, repository: Path
) -> None:
    first, *further = errors_of(compiler, repository, name, *options)
    assert NEEDS in first
    # No compiler ends at #error: the library's own sources end it by a file that is not there.
    assert len(further) == (name != SHOWN)
    assert all("nothing-more-after-this-error" in line for line in further)


@pytest.mark.parametrize("name", HEADERS_AND_SOURCES)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_64_bit_linux_is_taken(compiler: str, name: str, repository: Path) -> None:
    assert errors_of(compiler, repository, name) == []


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (f"-DCMAKE_C_FLAGS={OF_32_BITS[0]}", f"{OF_32_BITS[0]} makes programs for another system"),
        ("-DCMAKE_SYSTEM_NAME=QNX", "this is for QNX"),
        ("-DCMAKE_SYSTEM_NAME=Darwin", "this is for Darwin"),
    ],
)
def test_cmake_says_so_in_one_message(setting: str, said: str, repository: Path, tmp_path: Path) -> None:
    configure = ["cmake", "-S", str(repository), "-B", str(tmp_path), "--log-level=WARNING", setting]
    done = subprocess.run(configure, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert done.stderr.count("CMake Error") == 1
    text = re.sub(r"\s+", " ", done.stderr)  # which CMake breaks into lines
    assert NEEDS in text
    assert said in text
