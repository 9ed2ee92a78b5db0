"""Stacks behind system calls are counted by the program's own functions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from freestone.doctor.call_sites import read, totals

LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"


def munmap(*frames: str, at: float = 1.0) -> list[str]:
    inner = [f" > {LIBC}(munmap+0x7) [0x1]", f" > {LIBC}(__libc_free+0x6f) [0x2]"]
    outer = [f" > {LIBC}(__libc_start_main+0x85) [0x3]", " > /opt/prog(_start+0x21) [0x4]"]
    return [f"7 {at:.6f} munmap(0x7f0000000000, 4096) = 0", *inner, *(f" > {each}" for each in frames), *outer]


def test_a_site_is_who_calls_the_c_library() -> None:
    main = "/opt/prog(main+0x5a) [0x118a]"
    lines = [
        *munmap("/opt/prog(solve+0x4c) [0x1a0c]", main) * 3,
        *munmap("/opt/libmatrix.so(+0x9) [0x77]", "/opt/prog(solve+0x99) [0x1aff]", main),
        "7 1.000000 brk(NULL) = 0x1000",
        " > /lib64/ld-linux-x86-64.so.2(_dl_start+0x1) [0x1]",
    ]
    found = read(lines, ["munmap", "brk"])
    assert list(found) == ["munmap"]
    most, other = found["munmap"]
    assert (most.frames, most.calls) == (["solve (prog)", "main (prog)"], 3)
    assert other.frames == ["libmatrix.so+0x77", "solve (prog)", "main (prog)"]
    assert totals(lines, ["munmap", "brk"]) == {"munmap": 4, "brk": 1}


def test_the_probes_of_the_lab_are_no_site() -> None:
    assert read(munmap("/x/libfreestone-witness.so(report_start+0x1) [0x1]"), ["munmap"]) == {}


def test_a_call_in_two_lines_has_the_stack_of_the_second() -> None:
    lines = ["5 1.000000 munmap(0x1000, 4096 <unfinished ...>", "6 1.000001 brk(NULL) = 0x5000"]
    lines += ["5 1.000002 <... munmap resumed>) = 0", " > /opt/prog(gone+0x1) [0x1]"]
    assert [each.frames for each in read(lines, ["munmap"])["munmap"]] == [["gone (prog)"]]
    assert totals(lines, ["munmap"]) == {"munmap": 1}


@given(st.lists(st.text(max_size=60), max_size=20))
def test_any_text_is_read(lines: list[str]) -> None:
    assert isinstance(read(lines, ["munmap"]), dict)
