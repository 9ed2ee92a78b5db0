"""Counts by valgrind as tables, and the names of functions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.records.schema import FunctionCount, HeapCount, InstructionCount, InstructionCounts, Status
from freestone.reports import functions, references


def count(name: str, instructions: int, *, status: Status = "ok", reason: str | None = None) -> InstructionCount:
    part = FunctionCount(name="work", file="a/b.c", instructions=instructions // 2, data_reads=1, data_writes=1)
    return InstructionCount(
        workload="w",
        configuration=name,
        status=status,
        reason=reason,
        command=["./program", "--size", "2"],
        instructions=instructions,
        data_reads=instructions // 4,
        data_writes=instructions // 8,
        d1_misses=10,
        lld_misses=1,
        functions=[part] if instructions else [],
    )


def counts(*several: InstructionCount, heap: HeapCount | None = None) -> InstructionCounts:
    return InstructionCounts(experiment="e", valgrind="3", counts=list(several), heaps=[heap] if heap else [])


def shown(found: InstructionCounts, width: int = 100, *, ascii_only: bool = False) -> str:
    return references.render(found, "glibc", width=width, colour=False, ascii_only=ascii_only)


def test_references_stand_beside_the_baseline_and_the_rest_says_why() -> None:
    heap = HeapCount(
        workload="w",
        status="ok",
        command=["./program"],
        allocations=1234567,
        frees=1234560,
        allocated_bytes=99,
        in_use_bytes=7,
        in_use_blocks=1,
    )
    said = shown(
        counts(count("glibc", 1000), count("mine", 650), count("big", 0, status="failed", reason="no room"), heap=heap)
    )
    words = " ".join(said.split())
    assert "×0.65" in words
    assert "big: no room" in words
    assert "Counted: ./program --size 2" in words
    assert "50 % work (b.c)" in words
    assert "1,234,567 allocations of 99 bytes together, 1,234,560 frees, 7 bytes in 1 blocks left at exit" in words


def test_what_several_have_in_common_is_said_once() -> None:
    both = [count(name, 0, status="failed", reason="no room") for name in ("one", "two")]
    (part,) = references.parts(counts(count("glibc", 9), *both), "glibc").values()
    assert part.remarks == ["one, two: no room"]


def test_a_number_is_never_broken_on_a_narrow_terminal() -> None:
    said = shown(counts(count("glibc", 1_234_567_890_123), count("mimalloc2", 9_876_543_210_987)), 56)
    assert "1,234,567,890,123" in said
    assert "308,641,972,530" in said


def test_a_heap_alone_is_shown_too() -> None:
    said = shown(counts(heap=HeapCount(workload="w", status="timeout", reason="still running", command=["x"])))
    assert "Requests to malloc: timed out: still running" in said


@given(st.lists(st.integers(0, 10**15), min_size=1, max_size=5), st.integers(40, 120))
def test_nothing_is_wider_than_the_terminal(numbers: list[int], width: int) -> None:
    found = counts(*(count(f"c{place}" if place else "glibc", each) for place, each in enumerate(numbers)))
    said = shown(found, width)
    assert all(len(line) <= width for line in said.splitlines())
    assert shown(found, width, ascii_only=True).isascii()


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("malloc", "malloc"),
        ("pthread_getspecific@@GLIBC_2.34", "pthread_getspecific"),
        ("operator new(unsigned long)", "operator new"),
        ("operator delete[](void*, unsigned long)", "operator delete[]"),
        ("double (anonymous namespace)::one<std::allocator>(unsigned long)", "one<std::allocator>"),
        (
            "std::vector<int, std::allocator<int> >::push_back(int&&)",
            "std::vector<int, std::allocator<int> >::push_back",
        ),
        (f"void a::b<{'x::' * 30}y>::run(int)", "a::b<...>::run"),
        ("(below main)", "(below main)"),
        (
            "decltype (_S_construct({parm#1})) std::traits<a<b> >::construct<b>(a<b>&)",
            "std::traits<a<b> >::construct<b>",
        ),
        ("std::function<void (int)>::operator()(int) const", "std::function<void (int)>::operator"),
        ("intel_check_word.constprop.0", "intel_check_word.constprop.0"),
    ],
)
def test_a_function_is_spoken_of_by_its_name(name: str, short: str) -> None:
    assert functions.brief(name) == short


@given(st.text(st.sampled_from("ab:<>() ,&*~=-[]@G.operatrnwdl"), min_size=1, max_size=120))
def test_every_function_has_a_name_and_none_is_endless(name: str) -> None:
    assert 0 < len(functions.brief(name)) <= functions.LONGEST


def test_a_function_without_a_name_says_so() -> None:
    assert functions.spoken("???", "???") == "functions without a name"
    assert functions.spoken("f", "???") == "f"
    assert functions.spoken("f", "/build/allocator/src/allocate.h") == "f (allocate.h)"
