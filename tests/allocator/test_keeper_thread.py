"""The keeper does without thread-local variables: it is a thread that libc has given none."""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="thread-local variables are told by %fs")

WORK = ("keeping_look", "keeping_hurry", "keeper_is_to_leave")
"""What the keeper does, from where all that it calls is reached."""
CALLS_LIBC = {"memory_hooks_may_call", "is_no_thread_of_libc", "begin_call", "end_call"}
"""memory_hooks.c tells the keeper from threads of the program, before it asks for the latter's variables."""
ELSEWHERE = "gate_put_child_right"
"""Called in the child of a fork, where there is no keeper."""
PROTECTOR = "%fs:0x28"
"""The stack protector's word, which lies in the block that the keeper has."""


def functions_of(library: Path) -> dict[str, list[str]]:
    """Instructions of each function by its name; those that gcc has split off go with it."""
    text = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", str(library)], capture_output=True, text=True, check=True
    ).stdout
    functions: dict[str, list[str]] = {}
    for line in text.splitlines():
        head = re.fullmatch(r"[0-9a-f]+ <([^>]+)>:", line)
        if head:
            lines = functions.setdefault(head[1], [])
        elif line.startswith(" "):
            lines.append(line.split("\t", 1)[1])
    return functions


def reached_from(functions: dict[str, list[str]], names: tuple[str, ...]) -> set[str]:
    """Functions that are called from there, or jumped to, directly or by others."""
    reached: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        for line in functions[name]:
            called = re.match(r"(?:call|j\w+)\s+[0-9a-f]+ <([^+>]+)", line)
            if called and called[1] in functions and called[1] != ELSEWHERE:
                waiting.append(called[1])
    return reached


def test_keeper_has_no_thread_locals(freestone_library: Path) -> None:
    functions = functions_of(freestone_library)
    assert set(WORK) <= set(functions), "the library is stripped"
    reached = reached_from(functions, WORK)
    assert {"purge_piece", "os_purge", "heap_clean"} & reached, sorted(reached)
    guilty = [
        f"{name}: {line}"
        for name in sorted(reached)
        if name.partition(".")[0] not in CALLS_LIBC
        for line in functions[name]
        if "%fs:" in line and PROTECTOR not in line
    ]
    assert not guilty, "\n".join(guilty)


# --- the stack protector: in what reads tables and text, and in nothing that runs without thread-local data -----------

PROTECTED = {"unwind_step", "elf_function_in", "about", "malloc_info"}
WITHOUT_THREAD = ("syscall", "prctl", "close_range", "message_print")
"""May be called in a task with no thread-local data: none of the program's, or a report's after a fault there."""
LOOKED_UP_BEFORE = "libc_look_up"
"""Called by the wrappers before the library's constructor has run: then there is but the first thread."""


def test_protector_is_where_it_may_be(freestone_library: Path) -> None:
    functions = functions_of(freestone_library)
    protected = {name.partition(".")[0] for name, lines in functions.items() if any(PROTECTOR in x for x in lines)}
    assert protected >= PROTECTED
    functions[LOOKED_UP_BEFORE] = functions[ELSEWHERE] = []
    assert not protected & {name.partition(".")[0] for name in reached_from(functions, WITHOUT_THREAD)}
    assert not protected & {"malloc", "free", "calloc", "realloc"}
