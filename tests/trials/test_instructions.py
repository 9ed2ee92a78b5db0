"""Counting runs under valgrind: real ones, of small programs whose counts are known."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from freestone.allocators import configuration_for, find
from freestone.records.schema import Allocator, Configuration, HeapCount, InstructionCount, Workload
from freestone.trials import NoValgrind, count_instructions, count_requests, permissions, valgrind, valgrind_version
from freestone.trials.valgrind import Traces

pytestmark = pytest.mark.long

CompileC = Callable[..., Path]

needs_valgrind = pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind (package valgrind)")

LOOP = """
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
    for (int i = atoi(argv[1]); i > 0; i--) {
        char *volatile block = malloc(100);
        block[0] = 1;
        free(block);
    }
    return 0;
}
"""
FORKS = """
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    for (int i = 0; i < 2; i++) {
        if (fork() == 0) {
            free(malloc(10));
            exit(0);
        }
        wait(NULL);
    }
    return 0;
}
"""


@pytest.fixture(autouse=True)
def census() -> None:
    allowed = permissions()
    if not (allowed.perf or allowed.ptrace):
        pytest.skip("this machine lets nobody see which programs run")


@pytest.fixture
def freestone() -> Configuration:
    return configuration_for(find(["freestone"])[0])


@pytest.fixture
def instructions(scratch: Path) -> Callable[..., InstructionCount]:
    def count(
        configuration: Configuration, *command: object, timeout_s: float = 120, **more: object
    ) -> InstructionCount:
        return count_instructions(workload(*command, **more), configuration, timeout_s=timeout_s, scratch=scratch)

    return count


@pytest.fixture
def requests(scratch: Path) -> Callable[..., HeapCount]:
    def count(*command: object, timeout_s: float = 120, **more: object) -> HeapCount:
        return count_requests(workload(*command, **more), timeout_s=timeout_s, scratch=scratch)

    return count


def workload(*command: object, **more: object) -> Workload:
    return Workload.model_validate({"name": "test", "command": [str(word) for word in command], **more})


@needs_valgrind
def test_each_call_more_is_as_many_instructions_more_in_the_allocator_under_test(
    compile_c: CompileC, instructions: Callable[..., InstructionCount], glibc: Configuration, freestone: Configuration
) -> None:
    program = compile_c(LOOP, "-fno-builtin")
    for configuration in (glibc, freestone):
        few, many, more = (instructions(configuration, program, turns) for turns in (1000, 11000, 21000))
        assert (few.status, many.status, more.status) == ("ok", "ok", "ok"), few.reason
        first, second = (
            (one.instructions or 0) - (other.instructions or 0) for one, other in ((many, few), (more, many))
        )
        assert first == pytest.approx(second, rel=0.01), "the same work is the same count"
        assert 20 < second / 10000 < 400, "a malloc and a free"
        assert more.processes == 1
        assert (more.data_reads or 0) > 20000
        assert (more.data_writes or 0) > 20000
        assert more.caches
        assert sum(each.instructions for each in more.functions) <= (more.instructions or 0)


@needs_valgrind
def test_the_functions_are_those_of_the_library_in_force(
    compile_c: CompileC, instructions: Callable[..., InstructionCount], glibc: Configuration, freestone: Configuration
) -> None:
    program = compile_c(LOOP, "-fno-builtin")
    ours = instructions(freestone, program, 20000)
    mine = [each.file for each in ours.functions if each.name in ("malloc", "free")]
    assert len(mine) == 2
    assert all("/allocator/src/" in each for each in mine)
    theirs = instructions(glibc, program, 20000)
    assert not [each for each in theirs.functions if "/allocator/src/" in each.file]


@needs_valgrind
def test_a_preload_that_is_not_in_force_is_no_count(
    compile_c: CompileC, instructions: Callable[..., InstructionCount], freestone: Configuration
) -> None:
    program = compile_c(LOOP, "-fno-builtin")
    claimed = freestone.model_copy(update={"allocator": freestone.allocator.model_copy(update={"preload": []})})
    count = instructions(claimed, program, 10)
    assert count.status == "invalid"
    assert count.instructions is None
    assert "libfreestone.so" in (count.reason or "")


@needs_valgrind
def test_programs_that_are_started_count_too(
    compile_c: CompileC,
    instructions: Callable[..., InstructionCount],
    requests: Callable[..., HeapCount],
    glibc: Configuration,
) -> None:
    program = compile_c(LOOP, "-fno-builtin")
    command = ("sh", "-c", f"{program} 1000; {program} 2000; true")
    count = instructions(glibc, *command)
    assert (count.status, count.processes) == ("ok", 3)
    heap = requests(*command)
    assert (heap.status, heap.processes) == ("ok", 3)
    assert heap.allocations is not None
    assert 3000 <= heap.allocations < 3500, "what sh itself asks for is less"


@needs_valgrind
def test_requests_are_exact(compile_c: CompileC, requests: Callable[..., HeapCount]) -> None:
    program = compile_c(LOOP, "-fno-builtin")
    few, many = requests(program, 10), requests(program, 2010)
    assert few.status == many.status == "ok"
    for field, more in (("allocations", 2000), ("frees", 2000), ("allocated_bytes", 200000), ("in_use_blocks", 0)):
        assert getattr(many, field) - getattr(few, field) == more


@needs_valgrind
def test_forked_children_are_left_out_and_named(
    compile_c: CompileC, instructions: Callable[..., InstructionCount], glibc: Configuration
) -> None:
    count = instructions(glibc, compile_c(FORKS))
    assert (count.status, count.processes) == ("ok", 1)
    assert count.notes == ["without 2 forked processes, whose counts hold their parent's"]


@needs_valgrind
def test_the_command_for_counting_is_the_one_that_runs(
    compile_c: CompileC,
    instructions: Callable[..., InstructionCount],
    requests: Callable[..., HeapCount],
    glibc: Configuration,
) -> None:
    program = compile_c(LOOP, "-fno-builtin")
    small = [str(program), "7"]
    for count in (instructions(glibc, program, 10**9, counting=small), requests(program, 10**9, counting=small)):
        assert count.status == "ok"
        assert count.command == small


@needs_valgrind
def test_a_program_that_fails_says_so_in_its_own_words(
    compile_c: CompileC,
    instructions: Callable[..., InstructionCount],
    requests: Callable[..., HeapCount],
    glibc: Configuration,
) -> None:
    source = '#include <stdio.h>\nint main(void) { fputs("no paper\\n", stderr); return 3; }'
    program = compile_c(source)
    for count in (instructions(glibc, program), requests(program)):
        assert (count.status, count.reason) == ("failed", "exit status 3: no paper")


@needs_valgrind
def test_an_allocator_that_wants_more_addresses_than_valgrind_has_is_a_cell_that_says_why(
    compile_c: CompileC, instructions: Callable[..., InstructionCount]
) -> None:
    source = """
        #include <stdio.h>
        #include <stdlib.h>
        #include <sys/mman.h>
        __attribute__((constructor)) static void start(void) {
            void *range = mmap(NULL, 1ull << 46, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (range == MAP_FAILED) {
                fputs("no room to reserve\\n", stderr);
                abort();
            }
        }
    """
    library = compile_c(source, "-shared", "-fPIC", name="greedy.so")
    allocator = Allocator(name="greedy", title="greedy", file=str(library), preload=[str(library)])
    count = instructions(Configuration(name="greedy", allocator=allocator), compile_c(LOOP), 10)
    assert (count.status, count.reason) == ("failed", "under valgrind: killed by SIGABRT: no room to reserve")


@needs_valgrind
def test_where_the_kernel_refuses_perf_the_census_is_ptraces(
    compile_c: CompileC,
    instructions: Callable[..., InstructionCount],
    freestone: Configuration,
    needs_ptrace: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused = permissions().model_copy(update={"perf": False, "perf_reason": "refused"})
    monkeypatch.setattr("freestone.trials.trial.permissions", lambda: refused)
    program = compile_c(LOOP)
    count = instructions(freestone, "sh", "-c", f"{program} 10; {program} 10")
    assert (count.status, count.reason, count.processes) == ("ok", None, 3)


@needs_valgrind
def test_a_static_program_is_invalid(
    compile_c: CompileC, static_flag: str, instructions: Callable[..., InstructionCount], glibc: Configuration
) -> None:
    count = instructions(glibc, compile_c(LOOP, static_flag), 10)
    assert count.status == "invalid"
    assert (count.reason or "").startswith("static binary: a program of it loads no shared library")


@needs_valgrind
def test_a_run_that_takes_too_long_is_ended(
    compile_c: CompileC,
    instructions: Callable[..., InstructionCount],
    requests: Callable[..., HeapCount],
    glibc: Configuration,
) -> None:
    program = compile_c("int main(void) { for (;;) ; }")
    for count in (instructions(glibc, program, timeout_s=3), requests(program, timeout_s=3)):
        assert count.status == "timeout"
        assert "still running after 3 s" in (count.reason or "")


@needs_valgrind
def test_a_program_that_is_not_there_is_named(requests: Callable[..., HeapCount], tmp_path: Path) -> None:
    missing = requests(tmp_path / "nothing")
    assert missing.status == "failed"
    assert "nothing" in (missing.reason or "")
    nowhere = requests("true", directory=str(tmp_path / "nowhere"))
    assert nowhere.status == "failed"
    assert "cannot enter the directory" in (nowhere.reason or "")


@needs_valgrind
def test_what_a_program_writes_does_not_pass_for_a_count(
    compile_c: CompileC, requests: Callable[..., HeapCount], scratch: Path
) -> None:
    source = """
        #include <stdio.h>
        int main(void) {
            fputs("==1==     in use at exit: 7 bytes in 7 blocks\\n", stderr);
            fputs("==1==   total heap usage: 7 allocs, 7 frees, 7 bytes allocated\\n", stderr);
            return 0;
        }
    """
    heap = requests(compile_c(source))
    assert heap.status == "ok"
    assert heap.in_use_bytes == 0


@needs_valgrind
def test_a_folder_with_a_per_cent_sign_and_spaces_is_no_trouble(
    compile_c: CompileC, glibc: Configuration, tmp_path: Path
) -> None:
    scratch = tmp_path / "100 %p sure"
    scratch.mkdir()
    program = workload(compile_c(LOOP), 10)
    assert count_instructions(program, glibc, timeout_s=60, scratch=scratch).status == "ok"
    assert count_requests(program, timeout_s=60, scratch=scratch).status == "ok"
    assert list(scratch.iterdir()) == []


@needs_valgrind
def test_options_of_the_user_do_not_change_a_count(
    compile_c: CompileC, requests: Callable[..., HeapCount], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VALGRIND_OPTS", "--error-exitcode=9 --tool=none")
    assert requests(compile_c(LOOP), 5).status == "ok"


def test_without_valgrind_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    valgrind.version.cache_clear()
    with pytest.raises(NoValgrind, match="install the package valgrind"):
        valgrind_version()


def test_a_valgrind_that_does_not_work_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "valgrind").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "valgrind").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    valgrind.version.cache_clear()
    with pytest.raises(NoValgrind, match="valgrind does not work: ") as refused:
        valgrind_version()
    assert "\n" not in str(refused.value)
    valgrind.version.cache_clear()


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("==9== Command: x\n==9== valgrind: Unrecognised instruction at address 0x10.", "Unrecognised instruction at"),
        ("valgrind: the 'impossible' happened:\n   Killed by fatal signal", "the 'impossible' happened:"),
        ("valgrind: mmap(0x1, 2) failed in UME with error 12", "mmap(0x1, 2) failed in UME"),
        ("==9== Command: valgrind: x\n==9== I   refs:      12", None),
    ],
)
def test_what_valgrind_itself_stumbles_over_is_told(log: str, said: str | None) -> None:
    complaint = Traces({9: log}, {}).complaint()
    assert (complaint or "").startswith(said) if said else complaint is None
