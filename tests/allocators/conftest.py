"""Small programs and libraries to look at, compiled once per session."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def build_c(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compile one C source: ``build_c(name, source, *flags)`` gives the path of the result."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler: the programs to look at cannot be built")
    folder = tmp_path_factory.mktemp("compiled")

    def compile_one(name: str, source: str, *flags: str) -> Path:
        result = folder / name
        result.parent.mkdir(parents=True, exist_ok=True)
        code = folder / f"{name.replace('/', '-')}.c"
        code.write_text(source)
        done = subprocess.run(
            [compiler, str(code), "-o", str(result), *flags], capture_output=True, text=True, check=False
        )
        if done.returncode != 0 and "-static" in " ".join(flags):
            pytest.skip(f"static programs cannot be linked here: {done.stderr.strip().splitlines()[-1]}")
        assert done.returncode == 0, done.stderr
        return result

    return compile_one


HELLO = "int main(void) { return 0; }\n"

BUMP_ALLOCATOR = r"""
/* A malloc that gives memory out and never takes it back: enough to serve a program. */
#include <stddef.h>
#include <string.h>
static _Alignas(16) char pool[256 << 20];
static size_t used;
void *malloc(size_t n) {
    size_t room = (n + 31) & ~(size_t)15, at = __atomic_fetch_add(&used, room, __ATOMIC_RELAXED);
    if (at + room > sizeof pool) return NULL;
    memcpy(pool + at, &n, sizeof n);
    return pool + at + 16;
}
void free(void *p) { (void)p; }
void *calloc(size_t n, size_t m) { return malloc(n * m); }
void *realloc(void *p, size_t n) {
    void *q = malloc(n);
    if (p && q) {
        size_t old;
        memcpy(&old, (char *)p - 16, sizeof old);
        memcpy(q, p, old < n ? old : n);
    }
    return q;
}
"""


@pytest.fixture(scope="session")
def hello(build_c: Compile) -> Path:
    return build_c("hello", HELLO)


@pytest.fixture(scope="session")
def bump_library(build_c: Compile) -> Path:
    return build_c("libbump.so", BUMP_ALLOCATOR, "-shared", "-fPIC", "-O1", "-fno-builtin", "-Wl,--build-id")
