"""Whole trials: real programs, real allocators, and every way in which a figure must be refused."""

from __future__ import annotations

import hashlib
import shutil
import signal
from pathlib import Path

import pytest

from freestone.allocators import configuration_for, discover, find
from freestone.allocators.elf import inspect
from freestone.records.schema import Allocator, Configuration, Stages, Workload
from freestone.trials import Identity, LauncherBroken, Permissions, rehearse, run_trial, trial

PEERS = ["glibc", "freestone", "mimalloc", "jemalloc", "tcmalloc", "tbb"]


def arm(name: str) -> Configuration:
    found = {allocator.name: allocator for allocator in discover()}[name]
    if not found.available:
        pytest.skip(f"{name} is not on this machine: {found.reason}")
    return configuration_for(found)


def broken(file: Path | str, preload: list[str] | None = None) -> Configuration:
    allocator = Allocator(name="broken", title="broken", file=str(file), preload=preload or [str(file)])
    return configuration_for(allocator)


def reasons(record) -> str:
    assert record.status == "invalid", (record.status, record.reason)
    assert not record.proof.valid
    return record.reason


# --- proved


@pytest.mark.parametrize("name", PEERS)
def test_every_allocator_is_proved_in_a_shell_and_its_children(attempt, name):
    record = attempt("/bin/sh", "-c", "ls / >/dev/null; (ls / | wc -l) >/dev/null; true", configuration=arm(name))
    assert (record.status, record.reason) == ("ok", None)
    assert record.proof.images == 4
    assert all(row.proved and len(row.entries) == 4 for row in record.proof.processes)


@pytest.mark.parametrize("name", PEERS)
def test_every_allocator_is_proved_in_python(attempt, name):
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin") or pytest.skip("no system python3")
    configuration = arm(name)
    record = attempt(
        python, "-c", "import json, sqlite3; print(json.dumps([1] * 100000))",
        configuration=configuration, environment={"PYTHONMALLOC": "malloc"},
    )  # fmt: skip
    assert (record.status, record.reason) == ("ok", None)
    entry = record.proof.processes[0].entries[0]
    assert entry.build_id == configuration.allocator.build_id
    metrics = record.metrics
    assert metrics is not None
    assert metrics.wall_s > 0
    assert metrics.end_rss_kib is not None
    assert metrics.peak_rss_kib is not None
    assert metrics.peak_rss_kib >= metrics.end_rss_kib > 3000
    assert metrics.minor_faults is not None
    assert metrics.minor_faults > 500


def test_a_program_linked_with_another_allocator_is_served_by_libc_all_the_same(attempt, compile_c):
    jemalloc = arm("jemalloc").allocator
    program = compile_c("#include <stdlib.h>\nint main(void) { free(malloc(9)); return 0; }", "-fno-builtin",
                        "-Wl,--no-as-needed", jemalloc.file)  # fmt: skip
    record = attempt(program)
    assert (record.status, record.reason) == ("ok", None)
    assert {entry.file for entry in record.proof.processes[0].entries} == {find(["glibc"])[0].file}


def test_a_rest_is_no_part_of_the_time_and_has_its_figure(attempt, compile_c):
    program = compile_c("""
        #include <stdlib.h>
        #include <string.h>
        int main(void) { char *volatile p = malloc(32 << 20); memset(p, 1, 32 << 20); free(p); return 0; }
    """)
    record = attempt("sh", "-c", f"{program}; true", rest_s=1)
    assert (record.status, record.reason) == ("ok", None)
    assert record.metrics.series[-1].at_s - record.metrics.wall_s > 1.5, "two processes rested for a second each"
    assert 500 < record.figures["rss_kib_idle"] < 16 * 1024
    assert attempt("sh", "-c", f"{program}; true").figures is None


def test_threads_that_fork_and_exec_are_all_proved(attempt, compile_c):
    program = compile_c("""
        #include <pthread.h>
        #include <stdlib.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static void *start(void *unused) {
            for (int i = 0; i < 10; i++) {
                pid_t pid = fork();
                if (pid == 0) { free(malloc(100)); if (i % 2) exit(0); execlp("true", "true", (char *)0); _exit(9); }
                waitpid(pid, 0, 0);
            }
            return 0;
        }
        int main(void) {
            pthread_t t[4];
            for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, start, 0);
            for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
            return 0;
        }
    """, "-pthread")  # fmt: skip
    record = attempt(program)
    assert (record.status, record.reason) == ("ok", None)
    assert record.proof.images == 21


def test_a_daemon_is_proved_named_and_ended(attempt, compile_c):
    daemon = compile_c("#include <unistd.h>\nint main(void) { return daemon(0, 0) || pause(); }")
    record = attempt(daemon)
    assert record.status == "failed"
    assert str(daemon) in record.reason
    assert record.proof.valid
    assert record.survivors == [str(daemon)]
    assert [note for note in record.notes if str(daemon) in note] == record.notes != []


def test_a_process_that_changes_its_user_is_still_witnessed(attempt, needs_root, tree_for_all):
    if shutil.which("setpriv") is None:
        pytest.skip("no setpriv (package util-linux) to change the user with")
    record = attempt("setpriv", "--reuid=65534", "--clear-groups", "ls", "/")
    assert (record.status, record.reason) == ("ok", None)


def test_settings_reach_the_program_and_the_user_s_preload_stays(attempt, compile_c, glibc, tmp_path):
    library = compile_c("int users_own = 1;", "-shared", "-fPIC", name="users.so")
    record = attempt(
        "sh", "-c", 'echo "$A $B"; test "${LD_PRELOAD##*:}" = "$USERS"',
        configuration=glibc.model_copy(update={"environment": {"B": "setting"}}),
        environment={"A": "workload", "LD_PRELOAD": str(library), "USERS": str(library)},
    )  # fmt: skip
    assert (record.status, record.reason) == ("ok", None)
    assert record.output.stdout_sha256 == hashlib.sha256(b"workload setting\n").hexdigest()
    assert record.notes == [f"preloaded behind the allocator, as before: {library}"]


def test_an_allocator_in_a_folder_with_spaces_is_proved(attempt, tmp_path):
    source = Path(arm("mimalloc").allocator.file or "")
    copy = tmp_path / "my $HOME libs: here" / source.name
    copy.parent.mkdir()
    shutil.copy(source, copy)
    spaced = Allocator(name="spaced", title="spaced", file=str(copy), preload=[str(copy)],
                       build_id=inspect(copy).build_id)  # fmt: skip
    record = attempt("ls", "/", configuration=configuration_for(spaced))
    assert (record.status, record.reason) == ("ok", None)
    assert record.proof.processes[0].entries[0].file == str(copy)


# --- invalid


def test_a_static_binary_is_invalid(attempt, compile_c, static_flag):
    program = compile_c("#include <stdlib.h>\nint main(void) { free(malloc(1)); return 0; }", static_flag)
    assert reasons(attempt(program)).startswith(f"static binary: {program}")


def test_a_static_child_is_invalid(attempt, compile_c, static_flag):
    program = compile_c("int main(void) { return 0; }", static_flag)
    record = attempt("sh", "-c", f"true; {program}")
    assert reasons(record).startswith(f"static binary: {program}")
    assert record.proof.processes[0].proved, "the shell itself is served by the allocator"


OWN = """
#include <stddef.h>
#include <string.h>
static char memory[1 << 22]; static size_t used;
void *malloc(size_t n) { void *p = memory + used; used += (n + 31) & ~15ul; return p; }
void free(void *p) {}
void *calloc(size_t a, size_t b) { return malloc(a * b); }
void *realloc(void *p, size_t n) { void *q = malloc(n); if (p) memcpy(q, p, n); return q; }
"""


def test_a_program_with_its_own_malloc_is_invalid(attempt, compile_c):
    program = compile_c(OWN + "int main(void) { return malloc(3) == 0; }", "-fno-builtin")
    assert reasons(attempt(program)).startswith(f"own malloc: {program}")


def test_a_program_that_carries_jemalloc_under_its_own_names_is_invalid(attempt, compile_c):
    program = compile_c(
        "#include <stdlib.h>\nvoid *_rjem_malloc(size_t n) { static char m[64]; return m; }"
        "int main(void) { return _rjem_malloc(3) == 0; }"
    )
    assert "own malloc" in reasons(attempt(program))


def test_a_setuid_program_is_invalid(attempt, compile_c, scratch, needs_root):
    if shutil.which("setpriv") is None:
        pytest.skip("no setpriv (package util-linux) to change the user with")
    if "NoNewPrivs:\t0" not in Path("/proc/self/status").read_text():
        pytest.skip("no program can gain rights here (no_new_privs)")
    program = scratch / "program"
    try:
        shutil.copy(compile_c("int main(void) { return 0; }"), program)
        program.chmod(0o4755)
        record = attempt("setpriv", "--reuid=65534", "--clear-groups", program)
        reason = reasons(record)
    finally:
        program.unlink()
    assert reason.startswith("setuid: ")
    assert "program" in reason


def test_a_library_that_is_not_there_is_a_failed_preload(attempt):
    record = attempt("true", configuration=broken("/no/such/liballocator.so"))
    assert reasons(record) == (
        "failed preload: ld.so ignored '/no/such/liballocator.so': cannot open shared object file"
    )


def test_a_library_that_is_no_library_is_a_failed_preload(attempt, tmp_path):
    file = tmp_path / "libtext.so"
    file.write_text("this is not an ELF file" * 100)
    assert reasons(attempt("true", configuration=broken(file))).startswith("failed preload: ")


def test_a_library_with_a_missing_symbol_is_a_failed_preload(attempt, compile_c):
    file = compile_c("extern int missing(void); __attribute__((constructor)) static void f(void) { missing(); }",
                     "-shared", "-fPIC", "-Wl,-z,now", name="liblacking.so")  # fmt: skip
    reason = reasons(attempt("true", configuration=broken(file)))
    assert reason.startswith("failed preload: ")
    assert "undefined symbol: missing" in reason


def test_a_library_whose_dependency_is_missing_is_a_failed_preload(attempt, compile_c):
    gone = compile_c("int gone(void) { return 1; }", "-shared", "-fPIC", "-Wl,-soname,libgone.so.1", name="libgone.so")
    file = compile_c("int gone(void); int here(void) { return gone(); }", "-shared", "-fPIC", str(gone),
                     name="libneedy.so")  # fmt: skip
    gone.unlink()
    reason = reasons(attempt("true", configuration=broken(file)))
    assert reason.startswith("failed preload: ")
    assert "libgone.so.1" in reason


def test_a_library_without_malloc_is_a_failed_preload(attempt, compile_c):
    file = compile_c("int unrelated;", "-shared", "-fPIC", name="libempty.so")
    reason = reasons(attempt("true", configuration=broken(file)))
    assert reason.startswith("failed preload: ")
    assert "libc.so.6" in reason


def test_a_library_with_half_a_heap_is_invalid(attempt, compile_c):
    file = compile_c("""
        #include <stddef.h>
        extern void *__libc_malloc(size_t);
        void *malloc(size_t n) { return __libc_malloc(n); }
    """, "-shared", "-fPIC", "-fno-builtin", name="libhalf.so")  # fmt: skip
    assert reasons(attempt("true", configuration=broken(file))).startswith(
        "other provider: calloc, realloc, free of /usr/bin/true"
    )


def test_another_library_than_the_one_found_is_invalid(attempt, glibc):
    allocator = glibc.allocator.model_copy(update={"build_id": "0123456789abcdef"})
    reason = reasons(attempt("true", configuration=configuration_for(allocator)))
    assert "its build-id differs" in reason


def test_a_child_with_a_cleaned_environment_is_invalid(attempt):
    reason = reasons(attempt("sh", "-c", "ls / >/dev/null; env -i ls / >/dev/null"))
    assert reason.startswith("unseen process: ")
    assert "/ls" in reason


def test_a_child_that_drops_only_the_preload_is_invalid(attempt):
    assert reasons(attempt("sh", "-c", "unset LD_PRELOAD; ls /")).startswith("unseen process: ")


def test_a_plugin_on_a_heap_of_its_own_is_invalid(attempt, compile_c):
    plugin = compile_c(OWN + "void *plugin(void) { return malloc(10); }", "-shared", "-fPIC", "-fno-builtin",
                       name="plugin.so")  # fmt: skip
    program = compile_c("""
        #include <dlfcn.h>
        int main(int argc, char **argv) { return dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND) == 0; }
    """, "-ldl")  # fmt: skip
    assert reasons(attempt(program, plugin)).startswith(f"stray object: {plugin} takes ")


def test_a_musl_program_is_invalid(attempt, compile_c):
    if shutil.which("musl-gcc") is None:
        pytest.skip("no musl-gcc (package musl-tools) to build a program for another libc with")
    program = compile_c("int main(void) { return 0; }", name="musl-program", compiler="musl-gcc")
    assert reasons(attempt(program)).startswith("musl program: the lab's witness is built for glibc")


# --- failed and timed out


def test_an_exit_status_is_a_failure_with_its_last_words(attempt):
    record = attempt("sh", "-c", "echo one >&2; echo 'it broke' >&2; exit 3")
    assert (record.status, record.exit_code, record.reason) == ("failed", 3, "exit status 3: it broke")
    assert record.output.stderr_tail == "one\nit broke\n"
    assert record.proof.valid


def test_a_signal_is_a_failure(attempt, compile_c):
    record = attempt(compile_c("#include <stdlib.h>\nint main(void) { abort(); }"))
    assert (record.status, record.signal, record.reason) == ("failed", signal.SIGABRT, "killed by SIGABRT")


def test_a_static_binary_that_fails_is_invalid_and_says_both(attempt, compile_c, static_flag):
    record = attempt(compile_c("int main(void) { return 2; }", static_flag))
    assert record.status == "invalid"
    assert record.reason.startswith("static binary: ")
    assert record.reason.endswith("; exit status 2")


def test_a_timeout_is_told(attempt):
    record = attempt("sleep", "300", timeout_s=0.3)
    assert (record.status, record.reason) == ("timeout", "still running after 0.3 s")
    assert record.metrics is not None
    assert record.metrics.wall_s < 300


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("freestone-no-such-command", "command not found: freestone-no-such-command"),
        ("/etc/passwd", "not executable: /etc/passwd"),
        ("/", "not executable: /"),
    ],
)
def test_a_command_that_cannot_start_is_a_failure(attempt, command, reason):
    record = attempt(command)
    assert (record.status, record.reason, record.metrics) == ("failed", reason, None)
    assert not record.proof.valid


def test_a_directory_that_is_not_there_is_a_failure(attempt):
    record = attempt("true", directory="/no/such")
    assert record.reason == "cannot enter the directory /no/such: No such file or directory"


def test_a_program_that_kills_its_launcher_has_failed(attempt):
    record = attempt("sh", "-c", "kill -KILL $PPID; sleep 60")
    assert record.status == "failed"
    assert "the launcher was ended by SIGKILL" in record.reason


def test_a_program_that_floods_its_output_is_kept_small(attempt):
    record = attempt("sh", "-c", "head -c 3000000 /dev/zero; head -c 100000 /dev/zero | tr '\\0' x >&2")
    assert record.status == "ok", record.reason
    assert (record.output.stdout_bytes, record.output.stderr_bytes) == (3000000, 100000)
    assert record.output.stdout_sha256 == hashlib.sha256(bytes(3000000)).hexdigest()
    assert len(record.output.stderr_tail) == 2048


def test_output_that_is_not_text_can_be_recorded(attempt):
    record = attempt("sh", "-c", "printf '\\377\\376' >&2; exit 1")
    record.model_dump_json().encode("utf-8")


def test_a_scratch_folder_that_cannot_be_used_is_one_line(glibc):
    workload = Workload(name="w", command=["true"])
    with pytest.raises(LauncherBroken, match="cannot work in the folder /no/such: No such file or directory"):
        run_trial(workload, glibc, identity=Identity("x"), timeout_s=None, scratch=Path("/no/such"))


def test_the_record_carries_its_identity(attempt, glibc, scratch):
    identity = Identity("experiment", round=3, position=2, repeat=1)
    workload = Workload(name="w", command=["true"])
    record = run_trial(workload, glibc, identity=identity, timeout_s=None, scratch=scratch)
    assert (record.experiment, record.workload, record.configuration) == ("experiment", "w", "glibc")
    assert (record.round, record.position, record.repeat) == (3, 2, 1)
    assert record.started_at.endswith("+00:00")


# --- where the kernel refuses a census inside the trial


@pytest.fixture
def without_perf(monkeypatch, needs_ptrace):
    monkeypatch.setattr(trial, "permissions", lambda: Permissions(perf=False, perf_reason="refused", ptrace=True))


@pytest.mark.usefixtures("without_perf")
def test_a_rehearsal_makes_a_trial_valid(attempt, glibc, scratch):
    command = ["sh", "-c", "ls / >/dev/null; env true"]
    rehearsal = rehearse(Workload(name="w", command=command), glibc, timeout_s=60, scratch=scratch)
    assert (rehearsal.status, rehearsal.reason) == ("ok", None)
    record = attempt(*command, rehearsal=rehearsal)
    assert (record.status, record.reason, record.proof.census) == ("ok", None, "rehearsal")


@pytest.mark.usefixtures("without_perf")
def test_a_prepare_that_failed_in_the_rehearsal_alone_is_named_by_the_verdict(attempt, glibc, scratch):
    unprepared = Workload(name="w", command=["true"], stages=Stages(prepare="echo no room; exit 3"))
    rehearsal = rehearse(unprepared, glibc, timeout_s=60, scratch=scratch)
    assert (rehearsal.status, rehearsal.reason) == ("failed", "prepare failed with exit status 3: no room")
    assert reasons(attempt("true", rehearsal=rehearsal)) == (
        "the program was not seen from its start to its end: prepare failed with exit status 3: no room "
        "(in the rehearsal)"
    )


@pytest.mark.usefixtures("without_perf")
def test_a_trial_that_was_not_rehearsed_is_invalid(attempt):
    assert "there was no rehearsal" in reasons(attempt("true", rehearsal=None))


@pytest.mark.usefixtures("without_perf")
def test_a_static_child_found_in_the_rehearsal_makes_the_trial_invalid(attempt, glibc, scratch, compile_c, static_flag):
    program = compile_c("int main(void) { return 0; }", static_flag)
    command = ["sh", "-c", f"{program}; true"]
    rehearsal = rehearse(Workload(name="w", command=command), glibc, timeout_s=60, scratch=scratch)
    assert rehearsal.status == "invalid"
    assert reasons(attempt(*command, rehearsal=rehearsal)).startswith(f"static binary: {program}")


@pytest.mark.usefixtures("without_perf")
def test_a_process_that_the_rehearsal_did_not_have_makes_the_trial_invalid(attempt, glibc, scratch):
    rehearsal = rehearse(Workload(name="w", command=["sh", "-c", ":"]), glibc, timeout_s=60, scratch=scratch)
    assert "did not run in the rehearsal" in reasons(attempt("sh", "-c", "ls / >/dev/null; :", rehearsal=rehearsal))


@pytest.mark.usefixtures("needs_perf")
def test_where_perf_is_allowed_a_rehearsal_is_a_plain_run(glibc, scratch):
    rehearsal = rehearse(Workload(name="w", command=["true"]), glibc, timeout_s=60, scratch=scratch)
    assert (rehearsal.status, rehearsal.proof.census) == ("ok", "perf")
