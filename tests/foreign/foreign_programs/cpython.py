"""CPython's regression tests, every object a block of the allocator's: the same tests have to pass, fail and skip."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from foreign_programs.program import Program
from foreign_programs.room import Failure, Room

CHOICE = (
    *("test_array", "test_bytes", "test_concurrent_futures", "test_ctypes", "test_dict", "test_fork1", "test_gc"),
    *("test_io", "test_json", "test_list", "test_memoryview", "test_mmap", "test_multiprocessing_fork", "test_os"),
    *("test_pickle", "test_posix", "test_pty", "test_queue", "test_re", "test_resource", "test_set", "test_signal"),
    *("test_sqlite3", "test_subprocess", "test_thread", "test_threading", "test_threading_local", "test_tracemalloc"),
    *("test_unicode", "test_wait3", "test_wait4", "test_weakref", "test_zlib"),
)
"""Those in which memory, threads, forks or other programs have the leading part."""


def work_choice(room: Room) -> None:
    work(room, CHOICE)


def work_whole(room: Room) -> None:
    work(room, ())


def work(room: Room, tests: tuple[str, ...]) -> None:
    python = python_with_tests(room)
    report = room.folder / "report.xml"
    there = room.run([python, "-m", "test", "--list-tests"]).text.split()
    tests = tuple(one for one in there if one in tests or one.removeprefix("test.").split(".")[0] in tests)
    # Those that failed beside others are tried once more alone; one that hangs is named after its limit.
    options = ["-j2", "-w", "--timeout", "600", "--junit-xml", str(report), "--tempdir", str(room.folder)]
    extra = {"PYTHONMALLOC": "malloc", "PYTHONDONTWRITEBYTECODE": "1"}
    done = room.run([python, "-m", "test", *options, *tests], extra=extra, statuses=None)
    result = re.findall(rb"^Result: (.*)$", done.stdout, re.MULTILINE)
    if not result or not report.is_file():
        room.complain("the regression tests", done.stdout, done.stderr)
        raise Failure("the regression tests did not come to their end")
    # What failed beside others and not alone went by time.
    room.fact("result", result[-1].decode().split()[-1])
    failed = re.findall(rb"failed(?: again)?:\n((?: +test_.*\n)+)", done.stdout)
    room.fact("files that failed", b" ".join(sorted(failed[-1].split())).decode() if failed else "none")
    for file, verdict in verdicts(report.read_bytes()).items():
        room.fact(file, verdict)


def verdicts(report: bytes) -> dict[str, str]:
    """Test file -> how many of its tests were run and which of them failed; of one tried again, the last try counts."""
    passed = {
        case.get("name", ""): case.find("failure") is None and case.find("error") is None
        for case in ElementTree.fromstring(report).iter("testcase")
    }
    files: dict[str, list[str]] = {}
    for name in passed:
        file = next((part for part in name.split(".") if part.startswith("test_")), name.partition(".")[0])
        files.setdefault(file, []).append(name)
    return {
        file: f"{len(names)} run, failed: {', '.join(sorted(name for name in names if not passed[name])) or 'none'}"
        for file, names in files.items()
    }


def python_with_tests(room: Room) -> str:
    """A Python that brings its own tests along; distributions keep them in a package of its own."""
    base = getattr(sys, "_base_executable", sys.executable)
    for candidate in (base, "/usr/bin/python3"):
        probe = [candidate, "-c", "import test.test_json, test.test_subprocess, test.regrtest"]
        if room.run(probe, statuses=None).status == 0:
            return candidate
    raise Failure("no Python here has its tests (Debian: libpython3-testsuite)")


CHOSEN = Program(
    name="cpython",
    what=f"{len(CHOICE)} of its regression tests: memory, threads, forks, other programs; PYTHONMALLOC=malloc",
    package="libpython3-testsuite",
    needs=(),
    images=(Path(getattr(sys, "_base_executable", sys.executable)).resolve().name,),
    work=work_choice,
    version=(sys.executable, "--version"),
    limit_s=2400,
)
WHOLE = Program(
    name="cpython-whole",
    what="all of its regression tests, PYTHONMALLOC=malloc",
    package="libpython3-testsuite",
    needs=(),
    images=CHOSEN.images,
    work=work_whole,
    version=CHOSEN.version,
    limit_s=7200,
)
