"""``identify=1`` says whose malloc the program finds: not the library's wherever it is loaded."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import freestone

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

SERVES = f"freestone: {freestone.__version__} serves malloc\n"
IS_LOADED = f"freestone: {freestone.__version__} is loaded, but malloc is "
EMPTY = "int main(void) { return 0; }"
MALLOC = """
#include <stddef.h>
#include <string.h>
static char heap[1 << 22] __attribute__((aligned(16)));
static size_t used;
void *malloc(size_t size) { void *block = heap + used; used += (size + 15) & ~(size_t)15; return block; }
void free(void *block) { (void)block; }
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void *realloc(void *block, size_t size) {
    void *other = malloc(size);
    return block == NULL ? other : memmove(other, block, size);
}
"""


def _compile(path: Path, text: str, *options: str) -> Path:
    source = path.with_suffix(".c")
    source.write_text(text)
    subprocess.run(["cc", "-O0", "-fno-builtin", *options, "-o", path, source, "-ldl"], check=True)
    return path


def _said(*command: Path, preloads: tuple[Path, ...] = ()) -> str:
    environment = {**os.environ, "FREESTONE_OPTIONS": "identify=1", "LD_PRELOAD": " ".join(map(str, preloads))}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stderr


def test_a_preload_before_the_library_serves_instead(freestone_library: Path, tmp_path: Path) -> None:
    program = _compile(tmp_path / "program", EMPTY)
    other = _compile(tmp_path / "other.so", MALLOC, "-shared", "-fPIC")
    assert _said(program, preloads=(freestone_library,)) == SERVES
    assert _said(program, preloads=(freestone_library, other)) == SERVES
    assert _said(program, preloads=(other, freestone_library)) == f"{IS_LOADED}that of {other}\n"


def test_a_program_with_a_malloc_of_its_own_is_not_served(freestone_library: Path, tmp_path: Path) -> None:
    program = _compile(tmp_path / "program", MALLOC + EMPTY)
    assert _said(program, preloads=(freestone_library,)) == f"{IS_LOADED}the program's own\n"


def test_a_library_that_is_loaded_late_serves_nobody(freestone_library: Path, tmp_path: Path) -> None:
    text = "#include <dlfcn.h>\nint main(int n, char **a) { return dlopen(a[n - 1], RTLD_NOW | RTLD_GLOBAL) == 0; }"
    said = _said(_compile(tmp_path / "program", text), freestone_library)
    assert said.startswith(f"{IS_LOADED}that of /")
    assert "libc.so" in said
