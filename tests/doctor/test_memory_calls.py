"""Calls about memory are followed through each address space, as strace writes them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from freestone.doctor.memory_calls import calls, read

READ_WRITE = "PROT_READ|PROT_WRITE"
PRIVATE = "MAP_PRIVATE|MAP_ANONYMOUS"


def line(task: int, text: str, at: float = 1.0) -> str:
    return f"{task} {at:.6f} {text}"


def test_a_mapping_that_is_taken_back_whole_is_a_pair() -> None:
    seen = read(
        [
            line(7, f"mmap(NULL, 1052672, {READ_WRITE}, {PRIVATE}, -1, 0) = 0x7f0000000000"),
            line(7, "munmap(0x7f0000000000, 1052672) = 0"),
            line(7, f"mmap(NULL, 4096, {READ_WRITE}, {PRIVATE}, -1, 0) = 0x7f0000000000"),
            line(7, "munmap(0x7f0000000000, 4096) = 0"),
            line(7, f"mmap(NULL, 8192, {READ_WRITE}, {PRIVATE}|MAP_STACK, -1, 0) = 0x7f0000010000"),
            line(7, "munmap(0x7f0000010000, 8192) = 0"),
            line(7, "mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, 3, 0) = 0x7f0000020000"),
            line(7, "munmap(0x7f0000020000, 8192) = 0"),
        ],
        0.5,
    )
    assert (seen.growth.anonymous_maps, seen.growth.map_unmap_pairs, seen.growth.pairs_128k_32m) == (2, 2, 1)
    kinds = {each.name: each for each in seen.by_kind}
    assert kinds["munmap"].calls == 4
    assert kinds["munmap"].sizes == {4: 1, 8: 2, 2048: 1}


def test_the_end_of_the_heap_goes_up_and_down() -> None:
    ends = ["0x1000", "0x22000", "0x1000", "0x22000", "0x22000"]
    seen = read([line(1, f"brk({end}) = {end}") for end in ends], 1.0)
    assert (seen.growth.brk_up, seen.growth.brk_down, seen.growth.brk_down_up) == (2, 1, 1)


def test_threads_share_a_heap_and_children_have_their_own() -> None:
    """A thread's munmap ends what another thread mapped; a child's does not end its parent's."""
    mapped = line(1, f"mmap(NULL, 4096, {READ_WRITE}, {PRIVATE}, -1, 0) = 0x7f0000000000")
    thread = line(1, "clone3({flags=CLONE_VM|CLONE_FS|CLONE_THREAD, exit_signal=0}, 88) = 2")
    child = line(1, "clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD) = 2")
    unmapped = line(2, "munmap(0x7f0000000000, 4096) = 0")
    again = line(1, "munmap(0x7f0000000000, 4096) = 0")
    assert read([mapped, thread, unmapped, again], 1.0).growth.map_unmap_pairs == 1
    assert read([mapped, child, unmapped, again], 1.0).growth.map_unmap_pairs == 2
    executed = line(2, 'execve("/bin/true", ["true"], 0x7ffe /* 5 vars */) = 0')
    assert read([mapped, child, executed, unmapped, again], 1.0).growth.map_unmap_pairs == 1


def test_a_heap_of_a_thread_is_opened_step_by_step() -> None:
    seen = read(
        [
            line(1, f"mmap(NULL, 134217728, PROT_NONE, {PRIVATE}|MAP_NORESERVE, -1, 0) = 0x7f1231000000"),
            line(1, "munmap(0x7f1231000000, 67108864) = 0"),
            line(1, f"mprotect(0x7f1234000000, 135168, {READ_WRITE}) = 0"),
            line(1, f"mprotect(0x7f1234021000, 24576, {READ_WRITE}) = 0"),
            line(1, f"mprotect(0x7f1234027000, 24576, {READ_WRITE}) = 0"),
            line(1, "madvise(0x7f1234021000, 49152, MADV_DONTNEED) = 0"),
            line(1, f"mprotect(0x560000000000, 4096, {READ_WRITE}) = 0"),
        ],
        1.0,
    )
    assert (seen.growth.heap_reserves, seen.growth.heap_mprotects, seen.growth.heap_shrinks) == (1, 2, 1)


def test_broken_lines_are_put_together_and_what_failed_is_left_out() -> None:
    found = list(
        calls(
            [
                "5 1.000000 munmap(0x1000, 4096 <unfinished ...>",
                "6 1.000001 brk(NULL) = 0x5000",
                "5 1.000002 <... munmap resumed>) = 0",
                "5 1.000003 futex(0x55, FUTEX_WAIT_PRIVATE, 2, NULL <unfinished ...>",
                "5 1.000004 <... futex resumed>) = -1 EAGAIN (Resource temporarily unavailable)",
                "5 1.000005 +++ exited with 0 +++",
                "5 1.000006 --- SIGCHLD {si_signo=SIGCHLD} ---",
            ]
        )
    )
    assert [(each.task, each.name, each.arguments, each.failed) for each in found] == [
        (6, "brk", "NULL", False),
        (5, "munmap", "0x1000, 4096", False),
        (5, "futex", "0x55, FUTEX_WAIT_PRIVATE, 2, NULL", True),
    ]
    assert read(["1 1.000000 munmap(0x1000, 4096) = -1 EINVAL (Invalid argument)"], 1.0).by_kind == []


@given(st.lists(st.text(max_size=60), max_size=20))
def test_any_text_is_read(lines: list[str]) -> None:
    assert read(lines, 1.0).wall_s == 1.0
