"""The launcher: what it says of programs that end in every way a program can."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from freestone import native
from freestone.trials import tree
from freestone.trials.launch import (
    LauncherBroken,
    LaunchReading,
    LaunchRequest,
    ResultLost,
    command_line,
    launch,
    permissions,
    read_result,
)

TOUCH = """
#include <stdlib.h>
#include <sys/mman.h>
int main(int argc, char **argv) {
    size_t pages = strtoul(argv[1], 0, 10);
    char *p = mmap(0, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(p, pages * 4096, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < pages; i++) p[i * 4096] = 1;
    return 0;
}
"""


def is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")


def wait_for(condition, limit_s: float = 20.0) -> bool:
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


# --- how programs end


def test_an_exit_status_is_reported(run):
    reading = run("sh", "-c", "exit 3")
    assert (reading.state, reading.exit_code, reading.signal) == ("exited", 3, None)


def test_a_signal_is_reported(run):
    reading = run("sh", "-c", "kill -SEGV $$")
    assert (reading.state, reading.exit_code, reading.signal) == ("signaled", None, signal.SIGSEGV)


def test_output_goes_to_the_files(run, tmp_path):
    run("sh", "-c", "echo out; echo err >&2; cat")
    assert (tmp_path / "stdout").read_text() == "out\n"
    assert (tmp_path / "stderr").read_text() == "err\n"


def test_the_wall_time_is_that_of_the_first_process(run):
    reading = run("sleep", "0.3")
    assert 0.3 <= reading.wall_s < 30


def test_a_missing_command_is_not_found(run):
    assert run("freestone-no-such-command").state == "not-found"
    assert run("./freestone-no-such-command").state == "not-found"
    assert run("/etc/passwd/below-a-file").state == "not-found"


def test_a_missing_interpreter_is_named_as_such(run, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    assert run(script).state == "no-interpreter"


def test_a_file_without_permission_is_not_executable(run, tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("text")
    assert run(plain).state == "not-executable"
    assert run(tmp_path).state == "not-executable"


def test_a_script_without_interpreter_line_has_a_bad_format(run, tmp_path):
    script = tmp_path / "script"
    script.write_text("echo hello\n")
    script.chmod(0o755)
    assert run(script).state == "bad-format"


def test_a_forbidden_file_on_the_path_does_not_hide_a_later_one(run, tmp_path):
    for folder, mode in (("first", 0o644), ("second", 0o755)):
        (tmp_path / folder).mkdir()
        program = tmp_path / folder / "tool"
        program.write_text("#!/bin/sh\nexit 5\n")
        program.chmod(mode)
    path = f"{tmp_path}/first:{tmp_path}/second:/bin:/usr/bin"
    assert run("tool", environment={"PATH": path}).exit_code == 5
    assert run("tool", environment={"PATH": f"{tmp_path}/first"}).state == "not-executable"


def test_a_folder_of_the_path_that_may_not_be_entered_holds_nothing(run, scratch, needs_root, tree_for_all):
    closed = scratch / "closed"
    closed.mkdir(mode=0o700)
    try:
        path = f"{closed}:/usr/bin:/bin"
        script = f"PATH={path} exec {native.path('freestone-launch')} --result {scratch}/result -- no-such-command"
        scratch.chmod(0o777)
        subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", "sh", "-c", script], check=True)
        assert read_result(scratch / "result").state == "not-found"
    finally:
        (scratch / "result").unlink(missing_ok=True)
        closed.rmdir()


def test_a_missing_directory_is_named(run):
    reading = run("true", directory="/no/such/directory")
    assert (reading.state, reading.error) == ("directory", "No such file or directory")


def test_the_program_runs_in_its_directory_with_its_environment(run, tmp_path):
    os.environ["FREESTONE_TEST_GONE"] = "here"
    try:
        run("sh", "-c", 'pwd; echo "$A|${FREESTONE_TEST_GONE-gone}"', directory="/usr",
            environment={"A": "x=y z", "FREESTONE_TEST_GONE": None})  # fmt: skip
    finally:
        del os.environ["FREESTONE_TEST_GONE"]
    assert (tmp_path / "stdout").read_text() == "/usr\nx=y z|gone\n"


def test_the_program_has_no_terminal_and_no_descriptor_of_the_launcher(run, tmp_path):
    run("sh", "-c", "ls /proc/self/fd | wc -l; ls -l /proc/self/fd/0; (: </dev/tty) 2>/dev/null || echo none")
    count, stdin, terminal = (tmp_path / "stdout").read_text().splitlines()
    assert count == "4"  # 0, 1, 2 and the folder that ls itself reads
    assert stdin.endswith("-> /dev/null")
    assert terminal == "none"


def test_the_program_starts_with_no_signal_blocked(run, tmp_path):
    run("grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status")
    blocked, ignored = (line.split()[1] for line in (tmp_path / "stdout").read_text().splitlines())
    assert int(blocked, 16) == 0
    assert int(ignored, 16) & (1 << (signal.SIGPIPE - 1)) == 0, "Python ignores SIGPIPE, programs must not"


# --- time-outs and trees


def test_a_timeout_ends_the_whole_tree(run, tmp_path):
    script = "setsid sleep 400 & sleep 300 & echo $! $(jobs -p) ; wait"
    reading = run("sh", "-c", script, timeout_s=0.5)
    assert reading.state == "timeout"
    assert not reading.abandoned
    for pid in map(int, re.findall(r"\d+", (tmp_path / "stdout").read_text())):
        assert not is_alive(pid)


def test_a_program_that_ignores_sigterm_is_killed(run, compile_c):
    stubborn = compile_c("""
        #include <signal.h>
        #include <unistd.h>
        int main(void) { signal(SIGTERM, SIG_IGN); if (fork() == 0) for (;;) pause(); for (;;) pause(); }
    """)
    reading = run(stubborn, timeout_s=0.3)
    assert (reading.state, reading.signal, reading.killed) == ("timeout", signal.SIGKILL, True)


def test_a_stopped_program_is_ended_too(run):
    reading = run("sh", "-c", "kill -STOP $$", timeout_s=0.3)
    assert reading.state == "timeout"


def test_what_a_program_leaves_behind_is_named_and_ended(run, tmp_path):
    reading = run("sh", "-c", "sleep 300 >/dev/null & echo $!")
    assert (reading.state, reading.exit_code, reading.survivor_count) == ("exited", 0, 1)
    assert reading.survivors[0].program.endswith("/sleep")
    assert reading.wall_s < 300
    assert not is_alive(int((tmp_path / "stdout").read_text()))


def test_a_daemon_with_a_session_of_its_own_is_found(run, compile_c):
    daemon = compile_c("""
        #include <unistd.h>
        int main(void) {
            if (fork() == 0) { setsid(); if (fork() == 0) { for (;;) pause(); } _exit(0); }
            return 0;
        }
    """)
    reading = run(daemon)
    assert (reading.exit_code, reading.survivor_count) == (0, 1)
    assert reading.survivors[0].program == str(daemon)


def test_a_child_that_ends_a_little_later_is_no_survivor(run):
    reading = run("sh", "-c", "sleep 0.05 &")
    assert (reading.survivor_count, reading.orphans) == (0, 1)
    assert reading.tree_wall_s >= 0.05 > reading.wall_s


def test_the_time_of_the_whole_tree_is_that_of_the_first_process_where_none_outlives_it(run):
    reading = run("sh", "-c", "sleep 0.05")
    assert reading.tree_wall_s == reading.wall_s


def test_the_time_of_the_whole_tree_is_not_known_where_some_of_it_was_ended(run):
    assert run("sh", "-c", "sleep 300 >/dev/null &").tree_wall_s is None


def test_the_whole_tree_is_waited_for_on_request(run):
    reading = run("sh", "-c", "sleep 0.5 &", whole_tree=True)
    assert (reading.state, reading.exit_code, reading.survivor_count) == ("exited", 0, 0)
    assert reading.tree_wall_s >= 0.5 > reading.wall_s


def test_a_time_limit_holds_for_the_whole_tree(run):
    assert run("sh", "-c", "sleep 300 &", whole_tree=True, timeout_s=0.3).state == "timeout"


def test_what_a_killed_program_leaves_behind_is_not_waited_for(run):
    reading = run("sh", "-c", "sleep 300 & kill -KILL $$", whole_tree=True)
    assert (reading.state, reading.signal, reading.survivor_count) == ("signaled", signal.SIGKILL, 1)


def test_cpu_time_of_children_and_orphans_is_summed(run, compile_c):
    burn = compile_c("""
        #include <sys/wait.h>
        #include <time.h>
        #include <unistd.h>
        static void burn(double seconds) {
            struct timespec t;
            do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); while (t.tv_sec + t.tv_nsec * 1e-9 < seconds);
        }
        int main(void) {
            if (fork() == 0) { burn(0.2); _exit(0); }
            wait(0);
            if (fork() == 0) { if (fork() == 0) { burn(0.2); _exit(0); } _exit(0); }
            wait(0);
            burn(0.2);
            usleep(600000);
            return 0;
        }
    """)
    reading = run(burn)
    assert 0.55 <= reading.user_s + reading.sys_s < 10
    assert reading.orphans == 1


# --- memory and faults


def test_faults_are_those_of_the_program(run, compile_c):
    touch = compile_c(TOUCH)
    few, many = (run(touch, pages, counters=True) for pages in (1, 4001))
    assert few.minor_faults is not None
    assert many.minor_faults is not None
    assert many.minor_faults - few.minor_faults == pytest.approx(4000, abs=20)


def test_traps_are_counted_apart_from_populated_pages(run, compile_c):
    if not any(name.startswith("page-faults") for name in permissions().counters):
        pytest.skip("this machine does not let page-fault traps be counted")
    populate = compile_c("""
        #include <sys/mman.h>
        int main(void) {
            return mmap(0, 4096 * 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0) == MAP_FAILED;
        }
    """)
    reading = run(populate)
    traps = next(value for name, value in reading.counters.items() if name.startswith("page-faults"))
    assert reading.minor_faults is not None
    assert reading.minor_faults >= 4096 / 512  # huge pages may serve 512 pages at once
    assert traps < reading.minor_faults or reading.minor_faults < 4096


def test_counters_the_machine_lacks_are_absent(run):
    counted = set(run("true").counters)
    assert counted <= set(permissions().counters)


def test_peak_memory_is_not_inherited_from_who_starts_it(tmp_path):
    """A process of 500 MiB starts a program of a few MiB through the launcher; and, as a check, without it."""
    request = LaunchRequest(["true"], tmp_path / "result.json", tmp_path / "out", tmp_path / "err")
    script = f"""
import os, subprocess, sys
ballast = bytearray(500 << 20)
for i in range(0, len(ballast), 4096): ballast[i] = 1
subprocess.run({command_line(request, native.path("freestone-launch"))!r}[:3] + sys.argv[1:], check=True)
pid = os.fork()
if pid == 0: os.execvp("true", ["true"])
print(os.wait4(pid, 0)[2].ru_maxrss)
"""
    words = command_line(request, native.path("freestone-launch"))
    rest = [word for word in words[3:] if word not in ("--parent", str(os.getpid()))]
    done = subprocess.run([sys.executable, "-c", script, *rest], capture_output=True, text=True, check=True)
    reading = read_result(tmp_path / "result.json")
    assert reading.peak_rss_kib is not None
    assert reading.peak_rss_kib < 10 * 1024
    assert reading.floor_kib < 2 * 1024
    assert int(done.stdout) > 400 * 1024, "the kernel no longer hands the mark on; the launcher's smallness is moot"


def test_the_series_follows_the_tree(run, compile_c):
    grow = compile_c("""
        #include <stdlib.h>
        #include <string.h>
        #include <unistd.h>
        int main(void) {
            for (int i = 0; i < 10; i++) { memset(malloc(8 << 20), 1, 8 << 20); usleep(50000); }
            return 0;
        }
    """)
    reading = run(grow, sample_ms=10.0)
    times, sizes, processes = zip(*reading.series, strict=True)
    assert list(times) == sorted(times)
    assert set(processes) == {1}
    assert max(sizes) == reading.tree_peak_rss_kib
    assert 70 * 1024 < max(sizes) < 100 * 1024
    assert sizes[0] < 20 * 1024


LEADERLESS = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *work(void *nothing) {
    pthread_join(*(pthread_t *)nothing, 0);
    volatile char *kept = malloc(64 << 20);
    for (size_t at = 0; at < 64 << 20; at += 4096) kept[at] = 1;
    puts("there");
    fflush(stdout);
    usleep(600000);
    exit(0);
}
int main(void) {
    static pthread_t self, other;
    self = pthread_self();
    pthread_create(&other, 0, work, &self);
    pthread_exit(0);
}
"""


def test_memory_is_seen_of_a_process_whose_first_thread_has_left(run, compile_c):
    reading = run(compile_c(LEADERLESS, "-pthread"), sample_ms=10.0)
    assert reading.exit_code == 0
    assert reading.tree_peak_rss_kib is not None
    assert reading.tree_peak_rss_kib > 60 * 1024
    assert [kib > 60 * 1024 for at_s, kib, _ in reading.series if at_s > 0.4].count(True) > 5, "to its end"


def test_the_lab_itself_sees_a_process_whose_first_thread_has_left(compile_c):
    with subprocess.Popen([compile_c(LEADERLESS, "-pthread")], stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"there\n"
        assert tree.read(os.getpid()).rss_kib > 60 * 1024
        assert program.pid in tree.below(os.getpid()), "it lives, and has to be ended"
    assert program.pid not in tree.below(os.getpid())


def test_no_series_is_taken_when_none_is_asked_for(run):
    reading = run("sleep", "0.1", sample_ms=0.0)
    assert (reading.series, reading.tree_peak_rss_kib) == ([], None)


def test_a_long_series_stays_bounded(run):
    reading = run("sleep", "1.5", sample_ms=1.0)
    assert 10 < len(reading.series) <= 512


# --- being interrupted


@pytest.mark.usefixtures("heard_signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_launcher_ends_the_tree_and_leaves_a_result(tmp_path, number):
    request = LaunchRequest(
        ["sh", "-c", "sleep 300 & echo $! $$; wait"], tmp_path / "result.json", tmp_path / "out", tmp_path / "err"
    )
    with subprocess.Popen(command_line(request, native.path("freestone-launch"))) as launcher:
        assert wait_for(lambda: (tmp_path / "out").exists() and (tmp_path / "out").read_text().count(" ") == 1)
        launcher.send_signal(number)
        assert launcher.wait(30) == 0
    reading = read_result(tmp_path / "result.json")
    assert (reading.state, reading.interrupted_by) == ("interrupted", number)
    assert not any(is_alive(int(pid)) for pid in (tmp_path / "out").read_text().split())


def test_the_tree_ends_with_the_process_that_started_the_launcher(tmp_path):
    request = LaunchRequest(
        ["sh", "-c", "echo $$; sleep 300"], tmp_path / "result.json", tmp_path / "out", tmp_path / "err"
    )
    words = command_line(request, native.path("freestone-launch"))
    at = words.index("--parent")
    script = "import os, subprocess, sys; subprocess.run([sys.argv[1], '--parent', str(os.getpid()), *sys.argv[2:]])"
    with subprocess.Popen([sys.executable, "-c", script, words[0], *words[1:at], *words[at + 2 :]]) as starter:
        assert wait_for(lambda: (tmp_path / "out").exists() and (tmp_path / "out").read_text().endswith("\n"))
        starter.kill()
        starter.wait()
    assert wait_for(lambda: not is_alive(int((tmp_path / "out").read_text())))


def test_a_program_that_kills_the_launcher_dies_with_it(run, tmp_path):
    with pytest.raises(ResultLost, match="SIGKILL"):
        run("sh", "-c", "echo $$; kill -KILL $PPID; exec sleep 300")
    assert wait_for(lambda: not is_alive(int((tmp_path / "stdout").read_text())))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE])
def test_what_the_launcher_was_told_to_ignore_the_program_is_not(tmp_path, number):
    """As in a background job or under nohup: the program measured there is the one measured in a terminal."""
    request = LaunchRequest(
        ["sh", "-c", f"kill -{number.name[3:]} $$"], tmp_path / "result.json", tmp_path / "out", tmp_path / "err"
    )
    before = signal.signal(number, signal.SIG_IGN)
    try:
        words = command_line(request, native.path("freestone-launch"))
        subprocess.run(words, check=True, restore_signals=False)
    finally:
        signal.signal(number, before)
    reading = read_result(tmp_path / "result.json")
    assert (reading.state, reading.signal) == ("signaled", number)


@pytest.mark.usefixtures("heard_signals")
def test_an_interrupt_while_waiting_ends_the_tree_first(tmp_path):
    script = f"""
from pathlib import Path
from freestone.trials.launch import LaunchRequest, launch
from freestone.trials.process import look
folder = Path({str(tmp_path)!r})
try:
    launch(LaunchRequest(["sh", "-c", "echo $$; sleep 300"], folder / "result", folder / "out", folder / "err"))
except KeyboardInterrupt:
    program = look(int((folder / "out").read_text()))
    print(program is None or program.state in "ZX")  # where the launcher had to be killed, it is the system's to reap
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert wait_for(lambda: (tmp_path / "out").exists() and (tmp_path / "out").read_text().endswith("\n"))
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert said == "True\n"


# --- the command line and the result file


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "--result is missing"),
        (["--result", "r"], "the command is missing"),
        (["--result", "r", "--timeout", "soon", "--", "true"], "--timeout 'soon' is not a duration"),
        (["--result", "r", "--timeout", "-1", "--", "true"], "--timeout '-1' is not a duration"),
        (["--result", "r", "--census", "all", "--", "true"], "--census 'all' is not none, perf or ptrace"),
        (["--result", "r", "--env", "novalue", "--", "true"], "--env 'novalue' is not NAME=VALUE"),
        (["--result", "r", "--parent", "x", "--", "true"], "--parent 'x' is not a process"),
    ],
)
def test_a_wrong_command_line_is_named(words, complaint):
    done = subprocess.run([native.path("freestone-launch"), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == f"freestone-launch: {complaint}"


def test_a_result_that_cannot_be_written_is_one_line(tmp_path):
    request = LaunchRequest(["true"], tmp_path / "no" / "result", tmp_path / "out", tmp_path / "err")
    with pytest.raises(LauncherBroken, match=r"cannot write the result .*No such file or directory"):
        launch(request)


def test_names_that_are_not_text_survive(run, tmp_path, compile_c):
    name = os.fsdecode(b'caf\xe9 "quoted"\\\n\xc3\xa9')
    program = compile_c("#include <unistd.h>\nint main(void) { if (fork() == 0) for (;;) pause(); return 0; }")
    strange = tmp_path / name
    program.rename(strange)
    reading = run(strange)
    assert reading.survivors[0].program == f'{tmp_path}/caf\\xe9 "quoted"\\\n\xe9'
    json.dumps(reading.model_dump()).encode("utf-8")


def test_a_damaged_result_is_refused(tmp_path):
    file = tmp_path / "result.json"
    for text in ("", "{", "[]", '{"version": 2, "state": "exited"}', '{"version": 1, "state": "dancing"}'):
        file.write_text(text)
        with pytest.raises(LauncherBroken, match="damaged"):
            read_result(file)


def test_the_launcher_stays_small(run):
    reading: LaunchReading = run("true", census="perf" if permissions().perf else "none")
    assert 0 < reading.floor_kib < 2048


@pytest.mark.parametrize("ends_meanwhile", [True, False])
def test_a_launcher_that_is_stopped_for_a_while_says_so(run, attempt, ends_meanwhile: bool) -> None:
    """Its own time would be the program's."""
    line = f"(sleep 0.5; kill -CONT $PPID) & kill -STOP $PPID; {'exit' if ends_meanwhile else 'wait'} 0"
    reading = run("sh", "-c", line)
    assert reading.stopped
    record = attempt("sh", "-c", line)
    assert record.status == "failed"
    assert record.reason == "its launcher was stopped for a while (SIGSTOP), so how long the program took is not known"
    assert not run("sh", "-c", "sleep 0.3 & kill -STOP $!; kill -CONT $!; wait").stopped, "its own processes may be"
