"""What no preload reaches is named: heaps under other names, mallocs that come and go, runtimes with their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.allocators import elf, find
from freestone.allocators.discovery import configuration_for
from freestone.analysis.own_heaps import notes, sentence, sentences
from freestone.analysis.own_heaps import share as own_share
from freestone.records.schema import Asked, OwnHeap, TrialRecord, Workload
from freestone.trials import own_heaps, permissions, rehearse, witness

POOL = r"""
    static char pool[1 << 20];
    static unsigned long at;
    void *{prefix}malloc(unsigned long bytes) {
        return pool + (at = (at + bytes + 15) % (1 << 19) & ~15ul);
    }
    void {prefix}free(void *block) { (void)block; }
"""

OTHER_MALLOC = r"""
    #include <string.h>
    static char pool[1 << 20];
    static unsigned long at;
    void *malloc(unsigned long bytes) {
        return pool + (at = (at + bytes + 15) % (1 << 19) & ~15ul);
    }
    void free(void *block) { (void)block; }
    void *calloc(unsigned long n, unsigned long bytes) { return memset(malloc(n * bytes), 0, n * bytes); }
    void *realloc(void *block, unsigned long bytes) { (void)block; return malloc(bytes); }
"""

HOST = r"""
    #include <dlfcn.h>
    #include <stdlib.h>
    #include <string.h>
    int main(int count, char **words) {
        int flags = RTLD_LAZY | RTLD_LOCAL | (strchr(words[1], 'd') ? RTLD_DEEPBIND : 0);
        void *libc = dlopen("libc.so.6", RTLD_LAZY);
        int (*past)(void *) = (int (*)(void *))dlsym(libc, "dlclose");
        void *it = strchr(words[1], 'a') ? dlmopen(LM_ID_NEWLM, words[2], flags) : dlopen(words[2], flags);
        if (it == NULL) return 2;
        void *(*take)(size_t) = (void *(*)(size_t))dlsym(it, "malloc");
        void (*give)(void *) = (void (*)(void *))dlsym(it, "free");
        void (*work)(void) = (void (*)(void))dlsym(it, "work");
        for (long i = 0; i < 100000; i++) {
            if (work != NULL) work();
            else give(take(64));
        }
        if (strchr(words[1], 'c')) dlclose(it);
        if (strchr(words[1], 'p')) past(it);
        free(malloc(1));
        return 0;
    }
"""


def said(record: TrialRecord) -> list[str]:
    return [sentence(heap) for heap in record.proof.own_heaps]


@pytest.fixture
def library(compile_c):
    def build(source: str, name: str, *flags: str) -> Path:
        return compile_c(source, "-shared", "-fPIC", "-fno-builtin", *flags, name=name)

    return build


def test_a_library_with_a_heap_under_a_prefix_is_named(attempt, library, compile_c, tmp_path) -> None:
    library(POOL.replace("{prefix}", "je_"), "libdata.so", "-Wl,-soname,libdata.so")
    source = "void *je_malloc(unsigned long);\nint main(void) { return je_malloc(64) == 0; }"
    program = compile_c(source, f"-L{tmp_path}", "-l:libdata.so", f"-Wl,-rpath,{tmp_path}")
    record = attempt(program)
    assert record.status == "ok"
    assert said(record) == ["libdata.so has a heap of its own: je_malloc",
                            "program takes memory past malloc, by je_malloc of a library"]  # fmt: skip


def test_a_stripped_library_with_a_hidden_heap_is_named(attempt, library, compile_c) -> None:
    hidden = library('const char *work(void) { return "<jemalloc>: Error in malloc"; }', "libhidden.so", "-s")
    words = "jemalloc (its messages are in the file), opened while the program ran"
    assert said(attempt(compile_c(HOST, name="host"), "-", hidden)) == [f"libhidden.so has a heap of its own: {words}"]


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("-", "opened while the program ran"),
        ("c", "opened while the program ran and closed again"),
        ("a", "in a namespace of its own (dlmopen)"),
        ("ac", "opened while the program ran and closed again"),
    ],
)
def test_a_malloc_that_came_later_is_named(attempt, library, compile_c, way: str, words: str) -> None:
    record = attempt(compile_c(HOST, name="host"), way, library(OTHER_MALLOC, "libother.so"))
    assert (record.status, record.reason) == ("ok", None)
    assert f"libother.so has a heap of its own: a malloc, {words}" in said(record)


def test_a_malloc_that_goes_past_the_witness_is_seen_by_the_kernel_or_counted(attempt, library, compile_c) -> None:
    record = attempt(compile_c(HOST, name="host"), "p", library(OTHER_MALLOC, "libother.so"))
    if permissions().perf:
        assert (
            "libother.so has a heap of its own: a malloc; what it serves is the same under every allocator"
            in said(record)[0]
        )
    else:
        assert "1 shared object came and went unseen: not known whose malloc they brought" in record.notes


def test_a_plugin_bound_to_its_own_malloc_is_invalid_though_it_is_gone_at_the_end(
    attempt, library, compile_c, tmp_path
):
    library(OTHER_MALLOC, "libother.so", "-Wl,-soname,libother.so")
    plugin = library(
        "#include <stdlib.h>\nvoid work(void) { free(malloc(64)); }", "plugin.so",
        f"-L{tmp_path}", "-l:libother.so", f"-Wl,-rpath,{tmp_path}",
    )  # fmt: skip
    record = attempt(compile_c(HOST, name="host"), "dc", plugin)
    assert record.status == "invalid"
    assert (record.reason or "").startswith("stray object: ")
    assert attempt(compile_c(HOST, name="host"), "c", plugin).status == "ok", "bound to the preload, it is no stray"


def test_who_calls_libc_s_heap_by_its_own_name_is_named(attempt, compile_c) -> None:
    source = "void *__libc_malloc(unsigned long);\nint main(void) { return __libc_malloc(64) == 0; }"
    assert said(attempt(compile_c(source))) == ["program takes memory past malloc, from libc itself (__libc_malloc)"]
    weak = "__attribute__((weak)) void *mallocx(unsigned long, int);\nint main(void) { return mallocx != 0; }"
    assert said(attempt(compile_c(weak, name="asks"))) == [], "asking whether there is one is not using it"


def test_the_allocator_under_test_is_no_heap_of_its_own(attempt) -> None:
    for allocator in find(["glibc", "freestone", *_here("mimalloc", "jemalloc", "tbb")]):
        record = attempt("ls", "/", configuration=configuration_for(allocator))
        assert (record.status, said(record)) == ("ok", [])


def _here(*names: str) -> list[str]:
    from freestone.allocators import discover

    return [each.name for each in discover() if each.name in names and each.available]


def test_cpython_serves_itself_unless_it_is_told_not_to(attempt) -> None:
    named = [each for each in said(attempt(sys.executable, "-c", "1")) if "CPython" in each]
    assert len(named) == 1
    assert "--env PYTHONMALLOC=malloc" in named[0]
    assert said(attempt(sys.executable, "-c", "1", environment={"PYTHONMALLOC": "malloc"})) == []
    assert said(attempt("env", "PYTHONMALLOC=malloc", sys.executable, "-c", "1")) == [], "told by the program itself"


@pytest.mark.parametrize(("program", "runtime"), [("node", "V8"), ("java", "JVM"), ("php", "PHP")])
def test_other_runtimes_that_serve_themselves_are_named(attempt, program: str, runtime: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"no {program} here")
    argument = {"node": ["-e", "1"], "java": ["-version"], "php": ["-v"]}[program]
    assert any(f"({runtime}) serves itself" in each for each in said(attempt(program, *argument)))


# --- how much of it malloc serves


ASKS = r"""
    #include <stdlib.h>
    #include <string.h>
    #include <sys/mman.h>
    #include <unistd.h>
    static void *kept[1 << 10];
    int main(int count, char **words) {
        size_t by_malloc = (size_t)atoi(words[1]) << 20, by_itself = (size_t)atoi(words[2]) << 20;
        for (int i = 0; i < 1 << 10; i++) memset(kept[i] = malloc(by_malloc >> 10), 1, by_malloc >> 10);
        int kind = MAP_PRIVATE | MAP_ANONYMOUS;
        if (by_itself) memset(mmap(0, by_itself, PROT_READ | PROT_WRITE, kind, -1, 0), 1, by_itself);
        for (int i = 0; i < 1 << 10; i++) free(kept[i]);
        if (count > 3) _exit(0);
        return 0;
    }
"""


@pytest.mark.parametrize(("by_malloc", "by_itself", "share"), [(64, 0, 1.0), (32, 32, 0.5), (16, 144, 0.1), (0, 64, 0)])
def test_the_share_of_malloc_is_that_of_the_program(
    glibc, scratch, compile_c, by_malloc: int, by_itself: int, share: float
) -> None:
    """Whatever is freed before the end, and by whatever way the program leaves."""
    program = str(compile_c(ASKS))
    for leaves in ([], ["at once"]):
        workload = Workload(name="w", command=[program, str(by_malloc), str(by_itself), *leaves])
        seen = rehearse(workload, glibc, timeout_s=60, scratch=scratch, counting=True)
        assert own_share(seen.asked) == pytest.approx(share, abs=0.05)
        assert seen.asked is not None
        assert 1024 <= seen.asked.calls < 1100


LEAVES_WITHOUT_A_WORD = r"""
    #include <signal.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/syscall.h>
    #include <sys/wait.h>
    #include <unistd.h>
    static void *volatile kept;
    static void fill(void) { memset(kept = malloc(64 << 20), 1, 64 << 20); }
    int main(int count, char **words) {
        if (count < 2) return 0;
        if (*words[1] == 'e') { fill(); execl("/proc/self/exe", words[0], NULL); }
        if (fork() == 0) {
            fill();
            if (*words[1] == 's') raise(SIGKILL);
            syscall(SYS_exit_group, 0);
        }
        wait(NULL);
        return 0;
    }
"""


@pytest.mark.parametrize("leaves", ["exec", "signal", "raw exit"])
def test_no_share_is_told_where_an_image_left_without_a_word(glibc, scratch, compile_c, leaves: str) -> None:
    """All of its memory was malloc's: a sum without that would be no bound."""
    workload = Workload(name="w", command=[str(compile_c(LEAVES_WITHOUT_A_WORD)), leaves])
    assert rehearse(workload, glibc, timeout_s=60, scratch=scratch, counting=True).asked is None


def test_the_counter_serves_every_entry_point_and_threads_and_forks(glibc, scratch, compile_c) -> None:
    program = compile_c(r"""
        #include <errno.h>
        #include <malloc.h>
        #include <pthread.h>
        #include <stdint.h>
        #include <stdlib.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static int wrong(void) {
            void *p = NULL;
            if (posix_memalign(&p, 3, 8) != EINVAL || posix_memalign(&p, 4096, 100) || (uintptr_t)p % 4096) return 1;
            p = realloc(p, 100000);
            p = realloc(p, 10);
            free(p);
            free(NULL);
            if ((uintptr_t)(p = aligned_alloc(64, 64)) % 64) return 2;
            free(p);
            if ((uintptr_t)(p = pvalloc(1)) % 4096 || malloc_usable_size(p) < 4096) return 3;
            free(p);
            if (pvalloc(SIZE_MAX) != NULL || calloc(SIZE_MAX, 2) != NULL || malloc(SIZE_MAX) != NULL) return 4;
            unsigned char *clear = calloc(1000, 1);
            for (int i = 0; i < 1000; i++) if (clear[i]) return 5;
            free(clear);
            free(valloc(1));
            return realloc(malloc(1), 0) != NULL;
        }
        static void *start(void *unused) { for (int i = 0; i < 1000; i++) if (wrong()) abort(); return unused; }
        int main(void) {
            pthread_t t[4];
            for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, start, 0);
            for (int i = 0; i < 50; i++) {
                pid_t child = fork();
                int status;
                if (child == 0) _exit(wrong());
                if (waitpid(child, &status, 0) != child || status != 0) return 9;
            }
            for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
            return 0;
        }
    """, "-pthread")  # fmt: skip
    workload = Workload(name="w", command=[str(program)])
    seen = rehearse(workload, glibc, timeout_s=60, scratch=scratch, counting=True)
    assert "exit status" not in (seen.reason or "")
    assert "killed" not in (seen.reason or "")
    assert seen.asked is not None
    assert seen.asked.calls > 4000 * 10


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**4), st.booleans())
def test_the_share_is_told_where_it_says_something(most: int, private: int, calls: int, heap: bool) -> None:
    asked = Asked(calls=calls, most_kib=most, private_kib=private)
    heaps = [OwnHeap(file="/lib/a.so", what="mi_malloc", how="start")] if heap else []
    lines = sentences(asked, heaps)
    part = own_share(asked)
    assert part is None or 0 <= part <= 1
    told = any("comes from malloc" in line for line in lines)
    if private == 0 or most > 1.25 * private:
        assert not told, "what was asked for need not be touched: nothing is known"
    elif heap or calls < 100:
        assert told
    elif most * 2 > private:
        assert not told
    assert len(lines) == told + heap


# --- the witness beside the dynamic linker


def test_closing_from_many_threads_loses_nothing_and_a_caller_s_search_path_is_its_own(
    attempt, library, compile_c, tmp_path
) -> None:
    """A wrapped dlopen would look along the witness's search path instead of the plugin's."""
    (tmp_path / "inside").mkdir()
    library("int leaf;", "inside/libleaf.so")
    branch = library(
        '#include <dlfcn.h>\nvoid work(void) { void *leaf = dlopen("libleaf.so", RTLD_LAZY);'
        " if (leaf == 0) __builtin_trap(); dlclose(leaf); }",
        "libbranch.so", "-Wl,--enable-new-dtags,-rpath," + str(tmp_path / "inside"),
    )  # fmt: skip
    program = compile_c(r"""
        #include <dlfcn.h>
        #include <pthread.h>
        static char **given;
        static void *start(void *unused) {
            for (int i = 0; i < 300; i++) {
                void *branch = dlopen(given[1], RTLD_LAZY);
                ((void (*)(void))dlsym(branch, "work"))();
                dlclose(branch);
            }
            return 0;
        }
        int main(int count, char **words) {
            pthread_t t[4];
            given = words;
            for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, start, 0);
            for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
            return 0;
        }
    """, "-pthread")  # fmt: skip
    record = attempt(program, branch)
    assert (record.status, record.reason, record.notes) == ("ok", None, [])


def test_more_objects_than_a_report_has_room_for_are_all_listed(library, compile_c, tmp_path) -> None:
    first = library("int leaf;", "leaf.so")
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    many = [Path(shutil.copy(first, folder / f"leaf{number}.so")) for number in range(250)]
    program = compile_c(
        "#include <dlfcn.h>\nint main(int n, char **w) { while (*++w) if (!dlopen(*w, RTLD_LAZY)) return 2; return 0; }"
    )
    reports = tmp_path / "reports"
    reports.mkdir()
    environment = {"FREESTONE_WITNESS": str(reports), "LD_PRELOAD": str(_witness()), "PATH": os.environ["PATH"]}
    subprocess.run([program, *many], env=environment, check=True)
    (testimony,) = witness.read_folder(reports)
    assert testimony.damage is None
    assert testimony.departure is not None
    assert {each.file for each in testimony.departure.objects if each.how == "later"} == {str(each) for each in many}
    assert testimony.departure.unseen == 0


def _witness() -> Path:
    from freestone import native

    return native.path("libfreestone-witness.so")


# --- in words


@given(st.lists(st.sampled_from(["glibc", "freestone", "tbb"]), min_size=1), st.sampled_from(["a", "b"]))
def test_what_only_some_configurations_have_shown_is_said_of_those(under: list[str], name: str) -> None:
    heap = OwnHeap(file=f"/lib/{name}.so", what="mi_malloc", how="start")
    shown = [_record(each, [heap] if each in under else []) for each in ("glibc", "freestone", "tbb")]
    (line,) = notes(shown, ["glibc", "freestone", "tbb"])
    assert line.startswith(sentence(heap))
    assert (" only)" in line) == (len(set(under)) == 1)


def _record(configuration: str, heaps: list[OwnHeap]) -> TrialRecord:
    proof = {"valid": True, "own_heaps": [heap.model_dump() for heap in heaps]}
    return TrialRecord.model_validate(
        {"experiment": "e", "workload": "w", "configuration": configuration, "round": 0, "position": 0,
         "started_at": "now", "status": "ok", "proof": proof}
    )  # fmt: skip


def test_a_file_loaded_twice_is_named_once_as_the_more_telling_of_both() -> None:
    departure = witness.Departure(
        1.0, 1, objects=(witness.Loaded("closed", "/x/a.so"), witness.Loaded("apart", "/x/b.so"))
    )
    other = witness.Departure(2.0, 2, objects=(witness.Loaded("start", "/x/a.so"), witness.Loaded("start", "/x/b.so")))
    testimonies = [
        witness.Testimony(1, 0, 0.0, exe="/x/p", departure=departure), witness.Testimony(2, 0, 0.0, departure=other)
    ]  # fmt: skip
    found = own_heaps.files_seen(testimonies, ["/x/a.so", "/x/c.so"])
    assert found == {"/x/p": "start", "/x/a.so": "start", "/x/b.so": "apart", "/x/c.so": "mapped"}


def test_what_a_damaged_file_says_is_nothing(tmp_path) -> None:
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"\x7fELF" + bytes(60))
    files: dict[str, own_heaps.How] = {str(broken): "later", str(tmp_path / "gone.so"): "closed"}

    def facts(path: str) -> elf.ElfFacts | None:
        return elf.inspect(path) if os.path.exists(path) else None

    assert own_heaps.own_heaps(files, facts, "/no/such/allocator.so", {}) == []


def test_a_malloc_that_a_program_is_linked_against_is_none_of_its_own_though_a_signal_ends_it(
    attempt, library, compile_c, tmp_path
) -> None:
    """The preload comes before it, as the loader has it; and whoever is killed says nothing of what it has loaded."""
    library(OTHER_MALLOC, "libother.so", "-Wl,-soname,libother.so")
    source = "#include <signal.h>\nint main(int count, char **words) { if (count > 1) raise(SIGKILL); }"
    program = compile_c(source, "-Wl,--no-as-needed", f"-L{tmp_path}", "-l:libother.so", f"-Wl,-rpath,{tmp_path}")
    assert said(attempt(program)) == []
    assert said(attempt(program, "killed")) == []
