"""Settings whose name an allocator does not read, told with the nearest that it does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.allocators import configurations, discover
from freestone.allocators.variables import complaint, named_in, names, unread


def _here(name: str) -> None:
    if not any(each.name == name and each.available for each in discover()):
        pytest.skip(f"{name} is not on this machine")


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("glibc:MALLOC_ARENAMAX=1", "MALLOC_ARENA_MAX"),
        ("glibc:MALLOC_TRIM_THRESHOLD=0", "MALLOC_TRIM_THRESHOLD_"),
        ("glibc:MALOC_ARENA_MAX=1", "MALLOC_ARENA_MAX"),
        ("freestone:FREESTONE_OPTION=harden=1", "FREESTONE_OPTIONS"),
        ("mimalloc:MIMALLOC_SHOW_EROR=1", "MIMALLOC_SHOW_ERRORS"),
        ("mimalloc:MIMALLOC_EAGERCOMMIT=0", "MIMALLOC_EAGER_COMMIT"),
        ("jemalloc:MALLOCCONF=dirty_decay_ms:0", "MALLOC_CONF"),
        ("tcmalloc:TCMALLOC_RELEASERATE=1", "TCMALLOC_RELEASE_RATE"),
        ("tbb:TBB_MALLOC_USE_HUGEPAGES=1", "TBB_MALLOC_USE_HUGE_PAGES"),
    ],
)
def test_a_slip_is_told_with_the_name_that_was_meant(asked: str, meant: str) -> None:
    name, _, setting = asked.partition(":")
    _here(name)
    (line,) = unread(configurations([asked]))
    assert line == f"{asked}: this {name} reads no variable of that name; did you mean {meant}?"
    (right,) = configurations([f"{name}:{meant}={setting.partition('=')[2]}"])
    assert unread([right]) == []


@pytest.mark.parametrize("asked", ["mimalloc:TCMALLOC_RELEASE_RATE=1", "freestone:TBB_MALLOC_USE_HUGE_PAGES=1"])
def test_another_allocator_s_variable_is_told(asked: str) -> None:
    _here(asked.partition(":")[0])
    (line,) = unread(configurations([asked]))
    assert line.startswith(f"{asked}: this ")
    assert line.endswith(" reads no variable of that name; it changes nothing")


def test_what_is_for_the_program_the_loader_or_a_runtime_is_not_judged() -> None:
    for variable in ("OMP_NUM_THREADS", "PYTHONMALLOC", "GLIBC_TUNABLES", "LD_BIND_NOW", "LANG", "MY_OWN"):
        for name in ("glibc", "freestone"):
            assert unread(configurations([f"{name}:{variable}=1"])) == []


@pytest.mark.parametrize("value", ["lots", "", "2x", "1.5", "-", "0x"])
def test_no_number_where_glibc_takes_one_is_told(value: str) -> None:
    _here("glibc")
    (line,) = unread(configurations([f"glibc:MALLOC_ARENA_MAX={value}"]))
    assert line.endswith("this glibc takes a number there, and passes over what is none")


@pytest.mark.parametrize("value", ["2", " 3", "0x10", "-1", "+4", "0777"])
def test_a_number_as_glibc_reads_it_is_one(value: str) -> None:
    _here("glibc")
    assert unread(configurations([f"glibc:MALLOC_MMAP_THRESHOLD_={value}"])) == []


def test_documented_names_are_found() -> None:
    assert {"MALLOC_ARENA_MAX", "MALLOC_TRIM_THRESHOLD_", "MALLOC_PERTURB_", "MALLOC_TOP_PAD_"} <= _names("glibc")
    assert "FREESTONE_OPTIONS" in _names("freestone")


def test_one_line_for_a_setting_however_often_it_is_asked_for() -> None:
    found = configurations(["glibc:MALLOC_ARENAMAX=1,freestone,glibc"])
    assert len(unread([*found, *found])) == 1


def test_a_file_that_cannot_be_read_says_nothing() -> None:
    assert complaint("x", "MALLOC_X", "1", frozenset()) is None


@given(st.binary(max_size=200))
def test_any_content_can_be_searched(content: bytes) -> None:
    assert "GLIBC_TUNABLES" in named_in(content)
    assert "MALLOC_CONF" in named_in(content + b"\0MALLOC_CONF\0")
    assert "MIMALLOC_SHOW_ERRORS" in named_in(content + b"\0mimalloc_\0show_errors\0")


def _names(name: str) -> frozenset[str]:
    (configuration,) = configurations([name])
    return names(configuration.allocator)
