"""What the native files of a wheel need, and the oldest C library that follows from it."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wheels import symbols
from wheels.symbols import NativeFile, Need


def native(*needs: tuple[str, str]) -> NativeFile:
    return NativeFile("a", ("libc.so.6",), tuple(Need(*need) for need in needs), None)


def test_the_oldest_glibc_is_the_newest_that_any_symbol_is_wanted_in() -> None:
    files = [native(("malloc", "GLIBC_2.2.5"), ("dlsym", "GLIBC_2.34")), native(("log", "GLIBC_2.29"))]
    assert symbols.newest_glibc(files) == (2, 34)
    assert symbols.newest_glibc([]) == (2, 2, 5)


def test_what_is_too_new_is_named_with_its_file() -> None:
    files = [native(("malloc", "GLIBC_2.2.5"), ("dlsym", "GLIBC_2.34"))]
    assert symbols.newer_than(files, (2, 31)) == ["a: dlsym@GLIBC_2.34"]
    assert symbols.newer_than(files, (2, 34)) == []


@given(st.lists(st.integers(3, 60), min_size=1))
def test_versions_are_compared_as_numbers(minors: list[int]) -> None:
    files = [native(*((f"f{minor}", f"GLIBC_2.{minor}") for minor in minors))]
    newest = symbols.newest_glibc(files)
    assert newest == (2, max(minors))
    assert not symbols.newer_than(files, newest)


@pytest.mark.parametrize("version", ["GLIBC_PRIVATE", "GCC_3.0", "GLIBCXX_3.4.29", "GLIBC_ABI_DT_RELR"])
def test_versions_that_are_no_release_of_glibc_are_named(version: str) -> None:
    assert symbols.glibc_number(version) is None
    assert symbols.foreign_versions([native(("x", version))]) == [f"a: x@{version}"]


def test_a_file_that_is_no_program_needs_nothing() -> None:
    assert symbols.of_file("a.py", b"print()") is None


def test_this_python_needs_no_newer_glibc_than_there_is() -> None:
    found = symbols.of_file("python", Path(sys.executable).read_bytes())
    assert found is not None
    assert found.libraries
    said = ctypes.CDLL(None).gnu_get_libc_version
    said.restype = ctypes.c_char_p
    here = tuple(int(part) for part in said().decode().split("."))
    assert (2, 2, 5) <= symbols.newest_glibc([found]) <= here
    assert any(need.symbol for need in found.needs)
