"""Whose malloc a process has, and which of its mappings are glibc's heaps of threads."""

from __future__ import annotations

import pytest

from freestone.doctor import kept, memory_calls
from freestone.doctor.mappings import HEAP, library, mapping, thread_heaps

AT = 0x7F0000000000
KIB = 1 << 10


def line(begin: int, end: int, rights: str = "rw-p", name: str = "", inode: int = 0) -> str:
    return f"{begin:x}-{end:x} {rights} 00000000 00:00 {inode} {name}"


def smaps(*lines: str, rss_kib: int = 100) -> list[str]:
    return [text for each in lines for text in (each, f"Rss:    {rss_kib} kB", f"Anonymous:    {rss_kib} kB")]


HEAP_OF_GLIBC = (line(AT, AT + 132 * KIB), line(AT + 132 * KIB, AT + HEAP, "---p"))
FREESTONE = line(0x560000000000, 0x560000010000, "r-xp", "/usr/lib/libfreestone.so", 7)


def heaps(*lines: str) -> tuple[int, int]:
    found = kept.parse(smaps(*lines), 0.0)
    return found.thread_heaps, found.thread_heaps_kib


def test_a_heap_ends_with_a_rest_that_is_closed() -> None:
    assert heaps(*HEAP_OF_GLIBC) == (1, 100)
    assert memory_calls.heaps_in(HEAP_OF_GLIBC) == {AT // HEAP}


def test_one_that_is_open_as_a_whole_has_no_rest() -> None:
    assert heaps(line(AT, AT + HEAP)) == (1, 100)


def test_one_whose_open_part_lies_in_two_mappings_is_one() -> None:
    middle = AT + 64 * KIB
    assert heaps(line(AT, middle), line(middle, middle + KIB * 64), line(middle + KIB * 64, AT + HEAP, "---p")) == (
        1,
        200,
    )


def test_heaps_side_by_side_are_two() -> None:
    second = (line(AT + HEAP, AT + HEAP + 132 * KIB), line(AT + HEAP + 132 * KIB, AT + 2 * HEAP, "---p"))
    assert heaps(*HEAP_OF_GLIBC, *second) == (2, 200)


def test_a_rest_that_has_grown_by_the_guard_of_a_stack_is_one() -> None:
    assert heaps(HEAP_OF_GLIBC[0], line(AT + 132 * KIB, AT + HEAP + 4 * KIB, "---p")) == (1, 100)


@pytest.mark.parametrize(
    "lines",
    [
        [line(AT, AT + 8 * KIB)],
        [line(AT, AT + 8 * KIB), line(AT + 8 * KIB, AT + HEAP // 2, "---p")],
        [line(AT, AT + 8 * KIB), line(AT + 8 * KIB, AT + 1024 * HEAP, "---p")],
        [line(AT, AT + 8 * KIB), line(AT + 16 * KIB, AT + HEAP, "---p")],
        [line(AT + 4 * KIB, AT + 8 * KIB), line(AT + 8 * KIB, AT + HEAP, "---p")],
        [line(AT, AT + 8 * KIB, name="/a/file", inode=5), line(AT + 8 * KIB, AT + HEAP, "---p")],
    ],
    ids=["alone", "short-rest", "arena-of-another", "gap", "begins-elsewhere", "of-a-file"],
)
def test_what_only_begins_like_one_is_none(lines: list[str]) -> None:
    assert heaps(*lines) == (0, 0)
    assert memory_calls.heaps_in(lines) == frozenset()


def test_where_another_malloc_serves_there_are_none_of_glibc_s() -> None:
    assert heaps(FREESTONE, *HEAP_OF_GLIBC) == (0, 0)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("/usr/lib/libfreestone.so", "freestone"),
        ("/usr/lib/libjemalloc.so.2 (deleted)", "jemalloc"),
        ("/opt/libmimalloc-secure.so.2.1", "mimalloc"),
        ("/usr/lib/libtcmalloc_minimal.so.4", "tcmalloc"),
        ("/usr/lib/libtbbmalloc_proxy.so.2", "tbbmalloc"),
        ("/usr/lib/libmimallocator.so", None),
        ("/usr/lib/libfreestone-witness.so", None),
        ("/usr/lib/libfreestone-heapwatch.so", None),
        ("/usr/lib/libc.so.6", None),
    ],
)
def test_a_library_is_known_by_its_file(file: str, name: str | None) -> None:
    found = mapping(line(AT, AT + KIB, "r-xp", file, 9))
    assert found is not None
    assert library([found]) == (None if name is None else (name, file))
    assert thread_heaps([found]) == []
