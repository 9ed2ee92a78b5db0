"""What a program file says about itself."""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from freestone.allocators import elf

HELLO = "int main(void) { return 0; }\n"
ALLOCATING = "#include <stdlib.h>\nint main(void) { void *p = malloc(10); free(p); return p == 0; }\n"
OWN = "#include <stddef.h>\nstatic char pool[4096];\nvoid *malloc(size_t n) { (void)n; return pool; }\n" + HELLO


def test_a_dynamic_program_is_recognised(hello: Path) -> None:
    facts = elf.inspect(hello)
    assert facts.is_elf
    assert not facts.static
    assert facts.interpreter
    assert facts.interpreter.startswith("/")
    assert facts.libc in ("glibc", "musl")
    assert facts.own_malloc is None
    assert facts.damage is None


def test_a_file_is_read_again_only_once_it_has_changed(
    hello: Path, bump_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[elf.ElfFacts] = []
    read_really = elf._read

    def counted(facts: elf.ElfFacts, content: mmap.mmap) -> elf.ElfFacts:
        read.append(facts)
        return read_really(facts, content)

    monkeypatch.setattr(elf, "_read", counted)
    file = Path(shutil.copy(hello, tmp_path / "file"))
    first = elf.inspect(file)
    assert elf.inspect(file) == first
    assert len(read) == 2, "it changed just now, and may again within one tick of the clock of files"
    monkeypatch.setattr(elf, "SETTLED_S", 0.0)
    assert elf.inspect(file) == elf.inspect(file) == first
    assert len(read) == 3
    time.sleep(0.05)  # the clock of files has ticks
    shutil.copy(bump_library, file)
    assert elf.inspect(file).exports == elf.HEAP_ENTRIES


def test_a_program_that_only_calls_malloc_has_none_of_its_own(build_c) -> None:
    assert elf.inspect(build_c("allocating", ALLOCATING)).own_malloc is None
    assert elf.inspect(build_c("allocating-exported", ALLOCATING, "-rdynamic")).own_malloc is None


@pytest.mark.parametrize("flag", ["-static", "-static-pie"])
def test_a_static_program_is_recognised(build_c, flag: str) -> None:
    facts = elf.inspect(build_c(f"hello{flag}", ALLOCATING, flag))
    assert facts.static
    assert facts.interpreter is None
    assert facts.own_malloc is None  # libc's own malloc inside it is told by `static`


def test_a_shared_library_is_not_taken_for_a_static_program(bump_library: Path) -> None:
    facts = elf.inspect(bump_library)
    assert not facts.static
    assert facts.exports == elf.HEAP_ENTRIES


def test_a_program_that_exports_malloc_is_recognised(build_c) -> None:
    facts = elf.inspect(build_c("exporting", OWN, "-rdynamic", "-fno-builtin"))
    assert facts.own_malloc == "exports malloc"


def test_a_program_that_keeps_its_malloc_to_itself_is_recognised(build_c) -> None:
    hidden = OWN.replace("void *malloc", '__attribute__((visibility("hidden"))) void *malloc')
    facts = elf.inspect(build_c("hidden", hidden, "-fno-builtin"))
    assert facts.own_malloc == "defines malloc"


@pytest.mark.parametrize(
    ("symbol", "title"),
    [("_rjem_malloc", "jemalloc"), ("mi_malloc", "mimalloc"), ("tc_malloc", "tcmalloc"), ("rpmalloc", "rpmalloc")],
)
def test_an_embedded_allocator_is_known_by_its_prefixed_symbol(build_c, symbol: str, title: str) -> None:
    source = f"#include <stddef.h>\nvoid *{symbol}(size_t n) {{ (void)n; return NULL; }}\n" + HELLO
    assert elf.inspect(build_c(f"with-{symbol}", source)).own_malloc == f"embeds {title} ({symbol})"


def test_a_call_to_a_linked_allocator_is_not_an_embedded_one(build_c, tmp_path: Path) -> None:
    library = build_c("libmimalloc.so", "void *mi_malloc(unsigned long n) { (void)n; return 0; }\n", "-shared", "-fPIC")
    source = "void *mi_malloc(unsigned long n);\nint main(void) { return mi_malloc(1) != 0; }\n"
    facts = elf.inspect(build_c("calls-mimalloc", source, str(library)))
    assert facts.own_malloc is None
    assert facts.linked_allocator == "mimalloc"


@pytest.mark.parametrize(("text", "title"), [("<jemalloc>: ", "jemalloc"), ("mimalloc: warning: ", "mimalloc")])
def test_a_stripped_program_is_known_by_its_messages(build_c, text: str, title: str) -> None:
    source = f'#include <stdio.h>\nint main(void) {{ puts("{text}%d"); return 0; }}\n'
    facts = elf.inspect(build_c(f"stripped-{title}", source, "-s"))
    assert facts.own_malloc == f"embeds {title} (its messages are in the file)"


def test_python_with_an_unused_mimalloc_inside_is_not_accused(build_c) -> None:
    source = '#include <stdio.h>\nint main(void) { puts("PYTHONMALLOC"); puts("mimalloc: warning: "); return 0; }\n'
    assert elf.inspect(build_c("like-cpython", source, "-s")).own_malloc is None


def test_symbols_are_found_without_section_headers(bump_library: Path, tmp_path: Path) -> None:
    bare = bytearray(bump_library.read_bytes())
    bare[0x28:0x30] = bytes(8)  # e_shoff
    bare[0x3C:0x40] = bytes(4)  # e_shnum, e_shstrndx
    stripped = tmp_path / "libbare.so"
    stripped.write_bytes(bare)
    facts = elf.inspect(stripped)
    assert facts.exports == elf.HEAP_ENTRIES
    assert facts.build_id == elf.inspect(bump_library).build_id


def test_the_build_id_is_the_one_readelf_prints(bump_library: Path) -> None:
    readelf = shutil.which("readelf")
    if readelf is None:
        pytest.skip("readelf is not installed: nothing to compare the build-id with")
    notes = subprocess.run([readelf, "-n", bump_library], capture_output=True, text=True, check=True).stdout
    assert f"Build ID: {elf.inspect(bump_library).build_id}" in notes


def test_setuid_and_setgid_are_seen(hello: Path, tmp_path: Path) -> None:
    for mode in (0o4755, 0o2755):
        program = tmp_path / f"program-{mode:o}"
        shutil.copy(hello, program)
        program.chmod(mode)
        assert elf.inspect(program).setuid
    assert not elf.inspect(hello).setuid


def test_file_capabilities_are_seen(hello: Path, tmp_path: Path) -> None:
    program = tmp_path / "capable"
    shutil.copy(hello, program)
    empty_set_v2 = (0x02000000).to_bytes(4, "little") + bytes(16)
    try:
        os.setxattr(program, "security.capability", empty_set_v2)
    except OSError as error:
        pytest.skip(f"this user or file system cannot set file capabilities: {error.strerror}")
    assert elf.inspect(program).file_capabilities
    assert not elf.inspect(hello).file_capabilities


@pytest.mark.parametrize(
    ("first_line", "interpreter", "argument"),
    [
        ("#!/bin/sh", "/bin/sh", None),
        ("#! /usr/bin/env python3", "/usr/bin/env", "python3"),
        ("#!/usr/bin/env -S perl -w", "/usr/bin/env", "-S perl -w"),
        ("#!", None, None),
    ],
)
def test_a_script_names_its_interpreter(
    tmp_path: Path, first_line: str, interpreter: str | None, argument: str | None
) -> None:
    script = tmp_path / "script"
    script.write_text(f"{first_line}\necho\n")
    facts = elf.inspect(script)
    assert not facts.is_elf
    assert (facts.script_interpreter, facts.script_argument) == (interpreter, argument)


def test_what_is_no_program_is_no_elf(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    text = tmp_path / "text"
    text.write_text("words")
    for path in (empty, text, tmp_path, tmp_path / "absent", Path("/dev/null")):
        assert not elf.inspect(path).is_elf


def test_the_running_interpreter_is_readable() -> None:
    facts = elf.inspect(sys.executable)
    assert facts.is_elf or facts.script_interpreter


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_never_raises(hello: Path, tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(hello.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        # Most of the structure is in the first kilobyte and in the section headers at the end.
        place = data.draw(st.one_of(st.integers(0, 1024), st.integers(len(content) - 3000, len(content) - 1)))
        content[place] = data.draw(st.integers(0, 255))
    del content[data.draw(st.one_of(st.just(len(content)), st.integers(4, len(content)))) :]
    damaged = tmp_path / "damaged"
    damaged.write_bytes(content)
    facts = elf.inspect(damaged)
    assert facts.path == damaged
    assert facts.damage is None or "\n" not in facts.damage
