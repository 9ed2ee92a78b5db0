"""The witness: what it writes from inside processes of every kind, and how its reports are read."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given
from hypothesis import strategies as st

from freestone import native
from freestone.allocators import configuration_for, find
from freestone.allocators.elf import inspect
from freestone.trials import witness
from freestone.trials.witness import ENTRIES, parse, read_folder

LIBRARY = native.path("libfreestone-witness.so")


@pytest.fixture
def testify(tmp_path):
    """Runs a command with the witness preloaded (behind other preloads) and returns its reports."""
    folder = tmp_path / "reports"
    folder.mkdir()

    def go(
        *command: object, preload: tuple[str, ...] = (), status: int = 0, rest_s: str | None = None
    ) -> list[witness.Testimony]:
        environment = {
            **os.environ,
            **({} if rest_s is None else {"FREESTONE_WITNESS_REST": rest_s}),
            "LD_PRELOAD": ":".join([*preload, str(LIBRARY)]),
            "FREESTONE_WITNESS": str(folder),
        }
        words = [str(word) for word in command]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        assert done.stderr == ""
        return read_folder(folder)

    return go


# --- what the library is


def test_it_defines_no_function_of_the_heap():
    with LIBRARY.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".dynsym")
        defined = {symbol.name for symbol in symbols.iter_symbols() if symbol["st_shndx"] != "SHN_UNDEF"}
    assert defined - {""} == {"_exit", "_Exit", "dlclose"}


def test_it_needs_nothing_but_libc():
    assert [name for name in inspect(LIBRARY).needed if not name.startswith("libc.")] == []


def test_it_has_no_thread_local_storage():
    with LIBRARY.open("rb") as file:
        assert "PT_TLS" not in [segment["p_type"] for segment in ELFFile(file).iter_segments()]


def test_it_is_silent_without_its_variable(tmp_path):
    done = subprocess.run(["ls", tmp_path], env={"LD_PRELOAD": str(LIBRARY)}, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_a_folder_that_is_not_there_does_not_disturb_the_program():
    environment = {"LD_PRELOAD": str(LIBRARY), "FREESTONE_WITNESS": "/no/such/folder", "PATH": os.environ["PATH"]}
    done = subprocess.run(["sh", "-c", "echo fine"], env=environment, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"fine\n", b"")


# --- what it says


def test_a_plain_program_is_served_by_libc(testify, compile_c):
    program = compile_c("int main(void) { return 0; }")
    (report,) = testify(program)
    assert report.damage is None
    assert report.exe == str(program)
    assert report.exe_build_id == inspect(program).build_id
    assert report.parent == os.getpid()
    assert report.heap_works is True
    libc = find(["glibc"])[0]
    assert [(entry.symbol, entry.file, entry.build_id) for entry in report.entries] == [
        (symbol, libc.file, libc.build_id) for symbol in ENTRIES
    ]
    status = os.stat(report.entries[0].file)
    assert report.entries[0].inode == status.st_ino
    assert report.departure is not None
    assert report.departure.stray_objects == 0
    assert report.departure.resident_kib is not None


def test_resident_memory_at_the_end_is_what_the_program_holds(testify, compile_c):
    program = compile_c("""
        #include <stdlib.h>
        #include <string.h>
        int main(void) { char *volatile p = malloc(32 << 20); memset(p, 1, 32 << 20); return p[7] - 1; }
    """)
    (report,) = testify(program)
    assert report.departure is not None
    assert 32 * 1024 <= report.departure.resident_kib < 48 * 1024


@pytest.mark.parametrize("leave", ["exit(0)", "_exit(0)", "_Exit(0)", "quick_exit(0)", "return 0"])
def test_every_way_out_is_reported(testify, compile_c, leave):
    (report,) = testify(compile_c(f"#include <stdlib.h>\n#include <unistd.h>\nint main(void) {{ {leave}; }}"))
    assert report.departure is not None
    assert report.damage is None


# What it holds at its end, and what a thread of its own gives back some time after the end began.
HOLDS_AND_GIVES_BACK = """
    #include <pthread.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/mman.h>
    #include <unistd.h>
    static char *held;
    static void *give_back(void *unused) {
        usleep(400000);
        madvise(held, 32 << 20, MADV_DONTNEED);
        return unused;
    }
    int main(void) {
        pthread_t thread;
        held = mmap(0, 32 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(held, 1, 32 << 20);
        pthread_create(&thread, 0, give_back, 0);
        %s;
    }
"""


@pytest.mark.parametrize("leave", ["exit(0)", "_exit(0)", "quick_exit(0)"])
def test_a_process_kept_at_its_end_goes_on_giving_memory_back(testify, compile_c, leave):
    (report,) = testify(compile_c(HOLDS_AND_GIVES_BACK % leave, "-pthread"), rest_s="1")
    assert (report.damage, report.departure is None) == (None, False)
    rest = report.departure.rest
    assert report.departure.resident_kib >= 32 * 1024
    assert rest.resident_kib <= report.departure.resident_kib - 32 * 1000
    assert report.departure.at_s <= rest.from_s <= rest.until_s - 1
    assert rest.end.pss_kib >= 32 * 1000
    assert rest.idle.pss_kib <= rest.end.pss_kib - 31 * 1000
    assert 0 < rest.looked_s < rest.until_s - rest.from_s


def test_what_is_freed_lazily_is_told_apart_from_what_is_used(testify, compile_c):
    program = compile_c(
        """
        #include <string.h>
        #include <sys/mman.h>
        int main(void) {
            char *held = mmap(0, 16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            memset(held, 1, 16 << 20);
            return madvise(held, 8 << 20, MADV_FREE) != 0;
        }
        """
    )
    (report,) = testify(program, rest_s="1")
    end = report.departure.rest.end
    assert 7 * 1024 <= end.lazy_free_kib <= 9 * 1024


def test_a_fork_and_a_program_killed_while_kept(testify, compile_c):
    program = compile_c("""
        #include <stdlib.h>
        #include <signal.h>
        #include <sys/wait.h>
        #include <unistd.h>
        int main(void) {
            if (fork() == 0) exit(0);
            wait(0);
            alarm(1);
            return 0;
        }
    """)
    reports = testify(program, rest_s="2", status=-signal.SIGALRM)
    assert [report.damage for report in reports] == [None, None]
    assert {report.fork_of is None: report.departure.rest is None for report in reports} == {False: False, True: True}


@pytest.mark.parametrize("rest_s", ["", "0", "-1", "1x", "3601", "99999999999999999999"])
def test_what_is_no_number_of_seconds_keeps_nobody(testify, rest_s):
    assert [report.departure.rest for report in testify("true", rest_s=rest_s)] == [None]


def test_the_shell_s_own_way_out_is_reported(testify):
    assert all(report.departure is not None for report in testify("sh", "-c", "true"))


def test_a_killed_program_leaves_its_beginning(testify, compile_c):
    program = compile_c("#include <signal.h>\nint main(void) { raise(SIGKILL); }")
    (report,) = testify(program, status=-signal.SIGKILL)
    assert (report.damage, report.departure, len(report.entries)) == (None, None, 4)


def test_every_image_of_a_process_reports(testify):
    reports = testify("sh", "-c", "exec env env true")
    assert [Path(report.exe).name for report in reports] == [
        Path(os.path.realpath("/bin/sh")).name,
        "env",
        "env",
        "true",
    ]
    assert len({report.pid for report in reports}) == 1
    assert [report.departure is not None for report in reports] == [False, False, False, True]


def test_a_fork_reports_its_own_end(testify, compile_c):
    program = compile_c("""
        #include <stdlib.h>
        #include <sys/wait.h>
        #include <unistd.h>
        int main(void) { for (int i = 0; i < 2; i++) if (fork() == 0) { i ? _exit(0) : exit(0); } while (wait(0) > 0); }
    """)
    reports = testify(program)
    image = next(report for report in reports if report.fork_of is None)
    forks = [report for report in reports if report.fork_of is not None]
    assert [fork.fork_of for fork in forks] == [(image.pid, image.at_s)] * 2
    assert all(fork.departure is not None and fork.damage is None for fork in forks)


def test_a_child_that_shares_memory_says_nothing(testify, compile_c):
    program = compile_c("""
        #include <sys/wait.h>
        #include <unistd.h>
        int main(void) { if (vfork() == 0) { execl("/no/such", "x", (char *)0); _exit(3); } wait(0); return 0; }
    """)
    (report,) = testify(program)
    assert report.departure is not None


def test_threads_that_fork_while_others_load_libraries_end_in_time(testify, compile_c):
    program = compile_c("""
        #include <dlfcn.h>
        #include <pthread.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static volatile int done;
        static void *load(void *unused) {
            while (!done) { void *m = dlopen("libm.so.6", RTLD_NOW); if (m) dlclose(m); }
            return 0;
        }
        int main(void) {
            pthread_t thread;
            pthread_create(&thread, 0, load, 0);
            for (int i = 0; i < 100; i++) { if (fork() == 0) _exit(0); wait(0); }
            done = 1;
            pthread_join(thread, 0);
            return 0;
        }
    """, "-pthread", "-ldl")  # fmt: skip
    reports = testify(program)
    assert len(reports) == 101
    assert all(report.damage is None and report.departure is not None for report in reports)


def test_closed_descriptors_and_another_directory_do_not_matter(testify, compile_c):
    program = compile_c("""
        #include <unistd.h>
        int main(void) { for (int i = 0; i < 1024; i++) close(i); return chdir("/"); }
    """)
    (report,) = testify(program)
    assert (report.damage, report.departure is not None) == (None, True)


def test_no_descriptor_stays_open(testify):
    testify("sh", "-c", 'test "$(ls /proc/self/fd | wc -l)" = 4')


def test_errno_and_the_exit_status_are_untouched(testify, compile_c):
    program = compile_c("""
        #include <errno.h>
        #include <stdlib.h>
        static void last(void) { _exit(errno); }
        __attribute__((destructor(101))) static void end(void) { last(); }
        int main(void) { if (errno) return 1; errno = 77; return 0; }
    """)
    testify(program, status=77)


def test_a_path_with_every_byte_is_read_back(testify, compile_c, tmp_path):
    program = compile_c("int main(void) { return 0; }")
    strange = tmp_path / " %25 a\nb\tc é"
    program.rename(strange)
    (report,) = testify(strange)
    assert report.exe == str(strange)


@pytest.mark.parametrize("flag", ["-no-pie", "-Wl,-z,lazy", "-Wl,-z,now", "-fno-plt"])
def test_a_program_that_takes_the_address_of_malloc_is_no_stray(testify, compile_c, flag):
    source = """
        #include <stdlib.h>
        void *(*volatile ours)(size_t) = malloc;
        int main(void) { free(ours(10)); return calloc(1, 1) == 0; }
    """
    (report,) = testify(compile_c(source, flag, "-fPIC" if flag == "-fno-plt" else "-fno-pic"
                                  if flag == "-no-pie" else "-fPIE"))  # fmt: skip
    assert report.departure is not None
    assert report.departure.strays == ()


BUMP = """
#include <stddef.h>
#include <string.h>
static char memory[1 << 22]; static size_t used;
void *malloc(size_t n) { void *p = memory + used; used += (n + 31) & ~15ul; return p; }
void free(void *p) {}
void *calloc(size_t a, size_t b) { return malloc(a * b); }
void *realloc(void *p, size_t n) { void *q = malloc(n); if (p) memcpy(q, p, n); return q; }
"""
PLUGIN = BUMP + "void *plugin(void) { return malloc(10); }"


def test_a_program_with_its_own_malloc_says_so(testify, compile_c):
    program = compile_c(BUMP + "int main(void) { return malloc(1) == 0; }", "-fno-builtin")
    (report,) = testify(program)
    assert {entry.file for entry in report.entries} == {str(program)}


def test_an_object_opened_with_deepbind_is_a_stray(testify, compile_c):
    compile_c(PLUGIN, "-shared", "-fPIC", "-fno-builtin", name="plugin.so")
    program = compile_c("""
        #include <dlfcn.h>
        int main(int argc, char **argv) {
            void *h = dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND);
            return h == 0 || ((void *(*)(void))dlsym(h, "plugin"))() == 0;
        }
    """, "-ldl")  # fmt: skip
    plugin = program.parent / "plugin.so"
    (report,) = testify(program, plugin)
    assert report.departure is not None
    assert report.departure.stray_objects == 1
    (stray,) = report.departure.strays
    assert (stray.symbol in ENTRIES, stray.object, stray.target) == (True, str(plugin), str(plugin))


def test_an_object_opened_without_deepbind_is_none(testify, compile_c):
    compile_c(PLUGIN, "-shared", "-fPIC", "-fno-builtin", name="plugin.so")
    program = compile_c("""
        #include <dlfcn.h>
        int main(int argc, char **argv) {
            void *h = dlopen(argv[1], RTLD_LAZY);
            return h == 0 || ((void *(*)(void))dlsym(h, "plugin"))() == 0;
        }
    """, "-ldl")  # fmt: skip
    (report,) = testify(program, program.parent / "plugin.so")
    assert report.departure is not None
    assert report.departure.stray_objects == 0


def test_operators_of_another_allocator_are_strays(testify, compile_c):
    """Linked with an allocator that brings operators, while malloc is libc's: two heaps in one process."""
    other = compile_c(
        BUMP + "void *_Znwm(unsigned long n) { return malloc(n); } void _ZdlPv(void *p) { free(p); }",
        "-shared", "-fPIC", "-fno-builtin", name="libother.so",
    )  # fmt: skip
    program = compile_c(
        """
        extern void *_Znwm(unsigned long);
        extern void _ZdlPv(void *);
        int main(void) { _ZdlPv(_Znwm(8)); return 0; }
        """,
        str(other),
    )
    (mixed,) = testify(program, preload=(find(["glibc"])[0].file,))
    assert mixed.departure is not None
    assert [(stray.symbol[:3], stray.object, stray.target) for stray in mixed.departure.strays] == [
        ("_Zn", "program", str(other))
    ] or mixed.departure.strays[0].symbol.startswith("_Zd")


# --- a program that limits the size of its files

LIMITED = """
    #include <signal.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/resource.h>
    #include <sys/syscall.h>
    #include <sys/wait.h>
    #include <unistd.h>
    static void hear(int unused) { syscall(SYS_exit_group, 9); }
    int main(int count, char **words) {
        sigset_t excess;
        sigemptyset(&excess);
        sigaddset(&excess, SIGXFSZ);
        struct rlimit limit = {(rlim_t)atoi(words[1]), RLIM_INFINITY};
        setrlimit(RLIMIT_FSIZE, &limit);
        free(malloc(100));
        if (strcmp(words[2], "fork") == 0)
            return fork() == 0 ? 0 : (wait(0), 0);
        if (strcmp(words[2], "handles") == 0)
            signal(SIGXFSZ, hear);
        if (strcmp(words[2], "ignores") == 0)
            signal(SIGXFSZ, SIG_IGN);
        if (strcmp(words[2], "waits") == 0) {
            sigprocmask(SIG_BLOCK, &excess, 0);
            raise(SIGXFSZ);
        }
        return 0;
    }
"""
OURS = (str(native.path("libfreestone.so")),)


@pytest.mark.parametrize("served", [(), OURS])
@pytest.mark.parametrize("behaviour", ["plain", "fork", "handles", "ignores", "waits"])
@pytest.mark.parametrize("torn", [False, True])
def test_a_limit_on_the_size_of_files_harms_no_program_and_leaves_its_last_words_unsaid(
    testify, compile_c, tmp_path, served, behaviour, torn
):
    program, limit = compile_c(LIMITED), 0
    if torn:  # all but the end fits
        assert all(each.departure is not None for each in testify(program, 100_000, behaviour, preload=served))
        limit = min(file.stat().st_size for file in (tmp_path / "reports").iterdir()) - 20
        for file in (tmp_path / "reports").iterdir():
            file.unlink()
    (report,) = testify(program, limit, behaviour, preload=served)
    assert (report.damage, report.exe, report.heap_works) == (None, str(program), True)
    assert report.departure is None


def test_a_program_under_a_limit_from_its_start_says_at_least_that_it_was_there(testify, compile_c):
    program = compile_c("int main(void) { return 0; }")
    said = testify("sh", "-c", f"ulimit -f 0; {program}")
    (shell,) = [each for each in said if each.exe]
    (limited,) = [each for each in said if not each.exe]
    assert (shell.damage, shell.departure) == (None, None)
    assert limited.pid > 0
    assert limited.at_s > shell.at_s
    assert "a limit on the size of files (ulimit -f, RLIMIT_FSIZE), or the disk is full" in (limited.damage or "")


@pytest.mark.parametrize("name", ["glibc", "freestone"])
def test_a_program_that_limits_its_files_is_measured(attempt, compile_c, name):
    program = compile_c(LIMITED)
    record = attempt(program, 0, "plain", configuration=configuration_for(find([name])[0]))
    assert (record.status, record.reason) == ("ok", None)
    assert record.proof.silent == {str(program): 1}


# --- how reports are read

WHOLE = """start 1 1000000000 42 41
program 0a0b /usr/bin/a%20b
heap works
entry malloc 254 1 99 aabb /lib/x.so
entry calloc 254 1 99 aabb /lib/x.so
entry realloc 254 1 99 aabb /lib/x.so
entry free 254 1 99 - /lib/x.so
end
exit 1 2500000000 42
resident 1234
stray malloc /lib/plugin.so /lib/own.so
objects 7 1
end
"""


def test_a_whole_report_is_read():
    report = parse(WHOLE)
    assert report.damage is None
    assert (report.pid, report.parent, report.at_s, report.exe) == (42, 41, 1.0, "/usr/bin/a b")
    assert report.entries[0].build_id == "aabb"
    assert report.entries[3].build_id is None
    assert report.departure is not None
    assert (report.departure.at_s, report.departure.resident_kib) == (2.5, 1234)
    assert report.departure.strays[0].target == "/lib/own.so"
    assert report.departure.rest is None
    rest = parse(WHOLE + "rested 617 2600000000 4700000000\n").departure.rest
    assert (rest.resident_kib, rest.from_s, rest.until_s) == (617, 2.6, 4.7)
    seen = parse(
        WHOLE + "rested 617 2600000000 4700000000\nmemory end 600 0 40\nmemory idle 500 2048 0\nlooked 5000000\n"
    )
    assert seen.damage is None
    assert seen.departure.rest.end == witness.Memory(600, 0, 40)
    assert seen.departure.rest.idle == witness.Memory(500, 2048, 0)
    assert seen.departure.rest.looked_s == 0.005
    assert parse(WHOLE + "rested 617 2600000000 4700000000\nmemory end 600\n").damage is not None
    unknown = parse(WHOLE + "rested 0 2600000000 4700000000\n")
    assert (unknown.departure.rest, unknown.damage) == (None, None)


@pytest.mark.parametrize("cut", range(1, len(WHOLE.splitlines())))
def test_a_report_that_breaks_off_is_damaged_unless_a_part_is_whole(cut):
    text = "\n".join(WHOLE.splitlines()[:cut]) + "\n"
    assert (parse(text).damage is None) == text.endswith("end\n")


@given(st.integers(0, len(WHOLE)), st.integers(0, len(WHOLE)), st.text(max_size=12))
def test_a_damaged_report_never_raises(start, end, insert):
    parse(WHOLE[: min(start, end)] + insert + WHOLE[max(start, end) :])


@given(st.text())
def test_any_text_can_be_read(text):
    assert parse(text).damage is not None or text.startswith("start 1 ") or text.startswith("fork 1 ")


words = st.sampled_from(
    ["start", "fork", "program", "heap", "entry", "exit", "resident", "stray", "objects", "end", "works", "malloc",
     "1", "-1", "99999999999999999999999", "é", "/x", "aabb", "-", "%zz", "%00", ""]
)  # fmt: skip


@given(st.lists(st.lists(words, min_size=1, max_size=8).map(" ".join), max_size=12))
def test_lines_in_any_order_never_raise(lines):
    parse("\n".join(lines))


def test_a_folder_with_strange_files_is_read(tmp_path):
    (tmp_path / "1-2").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "notes.txt").write_text("not a report")
    (tmp_path / "3-4").mkdir()
    (tmp_path / "5-6").write_text(WHOLE)
    reports = read_folder(tmp_path)
    assert [report.damage is None for report in reports] == [False, False, True]


def test_what_is_no_regular_file_is_neither_waited_for_nor_followed(tmp_path):
    folder = tmp_path / "reports"
    folder.mkdir()
    (tmp_path / "elsewhere").write_text(WHOLE)
    os.mkfifo(folder / "1-1")
    (folder / "2-2").symlink_to(tmp_path / "elsewhere")
    (folder / "3-3").symlink_to("/dev/zero")
    reports = read_folder(folder)
    assert [(report.pid, report.damage) for report in reports] == [
        (1, "a report cannot be read: it is no regular file"),
        (2, "a report cannot be read: Too many levels of symbolic links"),
        (3, "a report cannot be read: Too many levels of symbolic links"),
    ]


def test_a_missing_folder_is_a_damaged_report(tmp_path):
    (report,) = read_folder(tmp_path / "gone")
    assert report.damage is not None


def test_python_itself_is_witnessed(testify):
    reports = testify(sys.executable, "-c", "import json, sqlite3, threading")
    last = reports[-1]
    assert last.departure is not None
    assert last.departure.stray_objects == 0
