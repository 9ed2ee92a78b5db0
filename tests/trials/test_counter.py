"""What stands in malloc's place and counts: it serves every program that the allocators serve."""

from __future__ import annotations

import os
import subprocess

import pytest

from freestone import native

USABLE = r"""
#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
    size_t (*true_size)(void *) = (size_t (*)(void *))dlsym(dlopen("libc.so.6", RTLD_LAZY), "malloc_usable_size");
    if (malloc_usable_size(0) != 0) return 2;
    for (size_t size = 0; size < 1 << 20; size = size * 3 / 2 + 1) {
        char *block = malloc(size), *aligned = memalign(4096, size);
        if (malloc_usable_size(block) != true_size(block)) return 3;
        if (malloc_usable_size(aligned) != true_size(aligned)) return 5;
        memset(block, 1, malloc_usable_size(block));
        block = realloc(block, 2 * size + 1);
        if (malloc_usable_size(block) != true_size(block)) return 4;
        free(block), free(aligned);
    }
    return 0;
}
"""


@pytest.mark.parametrize("watcher", ["libfreestone-counter.so", "libfreestone-heapwatch.so"])
def test_what_counts_malloc_says_how_large_glibc_s_blocks_are(compile_c, tmp_path, watcher: str) -> None:
    """Though the program is linked against an allocator with a malloc_usable_size of its own, as redis-server is."""
    _require(watcher)
    other = "unsigned long malloc_usable_size(void *block) { __builtin_trap(); }"
    compile_c(other, "-shared", "-fPIC", "-Wl,-soname,libsized.so", name="libsized.so")
    flags = ("-Wl,--no-as-needed", f"-L{tmp_path}", "-l:libsized.so", f"-Wl,-rpath,{tmp_path}", "-ldl", "-fno-builtin")
    program = compile_c(USABLE, *flags, name="sized")
    environment = {**os.environ, "LD_PRELOAD": str(native.path(watcher))}
    assert subprocess.run([program], env=environment, check=False).returncode == 0


def _require(part: str) -> None:
    try:
        native.path(part)
    except native.NativePartMissing:
        pytest.skip(f"{part} is built for glibc alone")
