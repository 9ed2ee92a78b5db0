"""Seeing an allocator at work, and seeing that it does not work."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from freestone import allocators
from freestone.records.schema import Allocator

CRASHING = """
#include <stddef.h>
void *malloc(size_t n) { (void)n; __builtin_trap(); }
void *calloc(size_t n, size_t m) { (void)n; (void)m; __builtin_trap(); }
void *realloc(void *p, size_t n) { (void)p; (void)n; __builtin_trap(); }
void free(void *p) { (void)p; }
"""


def of(file: Path, **fields: object) -> Allocator:
    return Allocator.model_validate({"name": "x", "title": "x", "file": str(file), "preload": [str(file)]} | fields)


def test_an_allocator_that_serves_is_verified(bump_library: Path) -> None:
    result = allocators.verify(of(bump_library))
    assert result.verified, result.reason
    assert str(result) == "verified"


def test_every_available_allocator_of_this_machine_is_verified() -> None:
    results = {a.name: allocators.verify(a) for a in allocators.discover() if a.available}
    assert {name: result.reason for name, result in results.items() if not result.verified} == {}


def test_it_is_seen_under_a_python_linked_to_fixed_addresses(
    bump_library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = "/usr/bin/python3"  # on Debian it is
    if not Path(python).is_file():
        pytest.skip(f"no {python} here")
    monkeypatch.setattr(sys, "executable", python)
    assert str(allocators.verify(of(bump_library))) == "verified"
    assert "malloc is served by" in str(allocators.verify(of(bump_library, preload=[])))


def test_an_allocator_that_was_never_loaded_is_not_verified(bump_library: Path) -> None:
    result = allocators.verify(of(bump_library, preload=[]))
    assert not result.verified
    assert "malloc is served by" in str(result)


def test_the_loaders_refusal_is_passed_on(tmp_path: Path) -> None:
    broken = tmp_path / "libbroken.so"
    broken.write_bytes(b"not a library")
    result = allocators.verify(of(broken))
    assert not result.verified
    assert "the loader refused it" in str(result)


def test_a_crash_is_named(build_c) -> None:
    library = build_c("libcrash.so", CRASHING, "-shared", "-fPIC", "-fno-builtin")
    result = allocators.verify(of(library))
    assert not result.verified
    assert "killed by SIG" in str(result)


def test_a_hang_is_named(build_c) -> None:
    library = build_c("libhang.so", CRASHING.replace("__builtin_trap();", "for (;;) ;"), "-shared", "-fPIC")
    result = allocators.verify(of(library), timeout_s=0.5)
    assert not result.verified
    assert "did not end within 0.5 s" in str(result)


@pytest.mark.parametrize("reason", [None, "not installed; apt-get install x"])
def test_an_absent_allocator_keeps_its_reason(reason: str | None) -> None:
    absent = Allocator(name="x", title="x", available=False, reason=reason)
    assert str(allocators.verify(absent)) == (reason or "not available")
