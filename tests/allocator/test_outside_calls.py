"""Functions outside the library that it calls, and its system calls: each is on a page, with a reason."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = REPOSITORY / "allocator" / "src"
LATE = REPOSITORY / "allocator" / "tests" / "lifecycle" / "late_functions.c"
REPLACED = REPOSITORY / "allocator" / "tests" / "lifecycle" / "replaced_functions.c"
DATA = {
    "environ",
    "__environ",
    "program_invocation_name",
    "freestone_default_options",
    "_r_debug",
    "__libc_single_threaded",
}
"""No functions."""
ALIASES = {"pthread_atfork": "__register_atfork"}
"""Names under which the static library reaches a function of the table."""
LINKER = {"_GLOBAL_OFFSET_TABLE_", "__ehdr_start", "__dso_handle"}
"""Defined in whatever is linked, by the linker or the compiler's start files."""
LINKED = {"__popcountdi2"}
"""Part of whatever they are linked into: a preload does not stand before them."""
NAMED = {"__libc_start_main"}
"""Looked for and never called."""
RUNTIMES = ("_Z", "_dl_find_object")
"""Not libc's, but the C++ runtime's and the dynamic linker's: the tests of exceptions and of reports replace those."""

pytestmark = [
    pytest.mark.skipif(shutil.which("nm") is None, reason="needs nm (package binutils)"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="compilers emit other calls for other processors"),
]


def _table() -> dict[str, tuple[set[str], str]]:
    """Function -> the files that call it, and the reason."""
    text = (REPOSITORY / "docs" / "reference" / "libc-functions.md").read_text(encoding="utf-8")
    table: dict[str, tuple[set[str], str]] = {}
    for names, files, reason in re.findall(r"^\| (`[^|]+`) \| (`[^|]+`) \| ([^|]+) \|$", text, re.MULTILINE):
        for name in re.findall(r"`(\w+)`", names):
            assert name not in table, name
            table[name] = (set(re.findall(r"`([\w.]+)`", files)), reason.strip())
    return table


def _symbols(*command: str) -> list[list[str]]:
    told = subprocess.run(["nm", *command], check=True, capture_output=True, text=True).stdout
    return [line.split() for line in told.splitlines()]


def _called_by_archive(archive: Path) -> dict[str, set[str]]:
    """Function that no object of the archive defines -> the sources whose objects refer to it."""
    own = {words[-1] for words in _symbols("--defined-only", str(archive)) if len(words) == 3}
    called: dict[str, set[str]] = defaultdict(set)
    for words in _symbols("--print-file-name", "--undefined-only", str(archive)):
        source = words[0].rstrip(":").rpartition(":")[2].removesuffix(".o")
        if words[-1] not in own and words[-1] not in LINKER:
            called[words[-1]].add(source)
    return called


def _bound_directly() -> set[str]:
    """Function that the library reaches in libc itself, whatever stands before it."""
    text = (SOURCES / "direct_binding.h").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = re.findall(r"#define DIRECT_(?:ALWAYS|IN_MODES|AT_START)\(name\)(.*)", text)
    return {name for line in lines for name in re.findall(r"name\((\w+)\)", line)}


def _looked_up() -> dict[str, set[str]]:
    """Function whose name is given to dlsym, or to the library's own search -> the sources that do."""
    found: dict[str, set[str]] = defaultdict(set)
    for source in SOURCES.glob("*.c"):
        text = source.read_text(encoding="utf-8")
        for name in re.findall(r'(?:dlsym|next_of|elf_function_\w+)\([^()]*"(\w+)"\)', text):
            found[name].add(source.name)
        if re.search(r"\belf_function_\w+\(", text):
            for name in re.findall(r'\w+\[\] = "(\w+)"', text):
                found[name].add(source.name)
    macros = (SOURCES / "libc.h").read_text(encoding="utf-8").replace("\\\n", " ")
    for line in re.findall(r"#define LIBC_\w+\(name\)(.*)", macros):
        for name in re.findall(r"name\((\w+)\)", line):
            found[name].add("libc_loaded.c")
    found["syscall"].add("libc_loaded.c")
    for name in _bound_directly():
        found[name].add("direct_binding.c")
    return found


def _archive(library: Path) -> Path:
    archive = REPOSITORY / "build" / "libfreestone.a" if library.parent.name != "build" else library.with_suffix(".a")
    if not archive.is_file():
        pytest.skip(f"no {archive}")
    return archive


def test_every_function_that_is_called_has_a_reason(freestone_library: Path) -> None:
    table = _table()
    called = _called_by_archive(_archive(freestone_library))
    for name, files in _looked_up().items():
        called[name] |= files
    for words in _symbols("--dynamic", "--undefined-only", str(freestone_library)):
        called[words[-1].partition("@")[0]] |= set()
    without = {name: files for name, files in called.items() if not files <= table.get(name, (set(), ""))[0]}
    unknown = called.keys() - table.keys()
    assert not unknown, "a call needs its row in docs/reference/libc-functions.md, with a reason"
    assert not without, "a call needs its row in docs/reference/libc-functions.md, with a reason"
    assert not table.keys() - called.keys(), "rows of functions that are called no more"
    assert all(len(reason) >= len("as above") for _, reason in table.values())


def test_every_function_of_libc_is_replaced_in_a_test(tmp_path: Path) -> None:
    """The program of lifecycle.before_functions_that_* and lifecycle.behind_functions_that_* thus meets all of them."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    made = tmp_path / "replaced.so"
    command = [compiler, "-D_GNU_SOURCE", "-shared", "-fPIC", "-fno-builtin", "-o", str(made), str(REPLACED)]
    subprocess.run(command, check=True)
    defined = {words[-1] for words in _symbols("--dynamic", "--defined-only", str(made))}
    names = (name for name in _table().keys() - DATA - LINKED - NAMED if not name.startswith(RUNTIMES))
    expected = {ALIASES.get(name, name) for name in names}
    assert not expected - defined, "replaced_functions.c lacks them"


def test_every_function_that_is_bound_directly_is_late_in_a_test() -> None:
    """The program of lifecycle.late_functions_* ends if the library calls one of them by its name."""
    late = set(re.findall(r"\w+", LATE.read_text(encoding="utf-8")))
    assert _bound_directly()
    assert not _bound_directly() - late, "late_functions.c lacks them"


def test_every_system_call_is_on_the_page() -> None:
    text = (REPOSITORY / "docs" / "reference" / "system-calls.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)[`(]", text))
    made: set[str] = set()
    for source in ("os.c", "clock.c", "libc_linked.c"):
        text_of = (SOURCES / source).read_text(encoding="utf-8")
        made |= set(re.findall(r"(?<!\{)\bSYS_(\w+)", text_of))  # in braces: what the keeper's own filter allows
    assert made
    assert not made - named, "docs/reference/system-calls.md names each call, and when it is made"
