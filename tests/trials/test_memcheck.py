"""The reader of memcheck's heap summary."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.trials import memcheck
from freestone.trials.memcheck import Heap

heaps = st.builds(Heap, *[st.integers(0, 10**13)] * 5)


def written(heap: Heap) -> str:
    return (
        "==31== Memcheck, a memory error detector\n"
        "==31== Command: ./program in use at exit: 1 bytes in 1 blocks\n"
        "==31== \n==31== HEAP SUMMARY:\n"
        f"==31==     in use at exit: {heap.in_use_bytes:,} bytes in {heap.in_use_blocks:,} blocks\n"
        f"==31==   total heap usage: {heap.allocations:,} allocs, {heap.frees:,} frees, "
        f"{heap.allocated_bytes:,} bytes allocated\n"
        "==31== \n"
    )


@given(heaps)
def test_the_summary_is_read_as_written(heap: Heap) -> None:
    assert memcheck.parse(written(heap)) == heap


@given(heaps, st.data())
def test_half_a_summary_is_none(heap: Heap, data: st.DataObject) -> None:
    text = written(heap)
    assert memcheck.parse(text[: data.draw(st.integers(0, text.index(" allocated\n")))]) is None


@given(st.lists(heaps))
def test_processes_add_up(several: list[Heap]) -> None:
    together = memcheck.merged(several)
    assert together.allocations == sum(each.allocations for each in several)
    assert together.in_use_blocks == sum(each.in_use_blocks for each in several)


@pytest.mark.parametrize("text", ["", "==1== Memcheck", "killed"])
def test_no_summary_is_none(text: str) -> None:
    assert memcheck.parse(text) is None
