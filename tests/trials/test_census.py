"""The census: from the kernel's events to program images, and the two sources compared."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.trials.census import Ending, Image, endings, images


def test_an_image_lasts_from_exec_to_exec_to_exit():
    found, complaints = images(
        [
            ["exec", 1.0, 10, "sh", "/bin/sh"],
            ["fork", 2.0, 11, 10],
            ["exec", 3.0, 11, "env", "/usr/bin/env"],
            ["exec", 4.0, 11, "ls", None],
            ["exit", 5.0, 11],
            ["exit", 6.0, 10],
        ]
    )
    assert complaints == []
    assert found == [
        Image(10, 0, 1.0, 6.0, "sh", "/bin/sh"),
        Image(11, 10, 3.0, 4.0, "env", "/usr/bin/env"),
        Image(11, 10, 4.0, 5.0, "ls", None),
    ]


def test_a_fork_without_exec_is_no_image_of_its_own():
    found, _ = images([["exec", 1.0, 10, "sh", "/bin/sh"], ["fork", 2.0, 11, 10], ["exit", 3.0, 11]])
    assert [image.pid for image in found] == [10]
    assert found[0].end_s == math.inf


def test_a_pid_that_is_used_again_starts_anew():
    found, _ = images(
        [["exec", 1.0, 10, "a", "/a"], ["fork", 2.0, 10, 3], ["exec", 3.0, 10, "b", "/b"], ["exit", 4.0, 10]]
    )
    assert [(image.exe, image.begin_s, image.end_s, image.parent) for image in found] == [
        ("/a", 1.0, 2.0, 0),
        ("/b", 3.0, 4.0, 3),
    ]


def test_every_process_has_one_ending_under_the_name_of_what_it_ran_last():
    events = [
        ["exec", 1.0, 10, "sh", "/bin/sh"],
        ["fork", 2.0, 11, 10],
        ["fork", 2.5, 12, 10],
        ["exec", 3.0, 12, "ls", "/bin/ls"],
        ["exit", 4.0, 11],
        ["exit", 5.0, 12],
        ["exit", 5.5, 99],
        ["exit", 6.0, 10],
    ]
    assert endings(events) == [
        Ending(11, 2.0, 4.0, "/bin/sh", 10),
        Ending(12, 2.5, 5.0, "/bin/ls", 10),
        Ending(10, 1.0, 6.0, "/bin/sh"),
    ]


def test_an_event_that_makes_no_sense_is_named():
    found, complaints = images([["dance", 1.0], ["exec", "soon", 1, "a", "b"], []])
    assert found == []
    assert len(complaints) == 3


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5),
    max_leaves=4,
)


@given(
    st.lists(
        st.lists(anything, max_size=6) | st.tuples(st.sampled_from(["fork", "exec", "exit"]), anything), max_size=6
    )
)
def test_damaged_events_never_raise(events):
    images(events)


pids = st.integers(1, 5)
event = st.one_of(
    st.tuples(st.just("fork"), st.just(0.0), pids, pids),
    st.tuples(st.just("exec"), st.just(0.0), pids, st.just("x"), st.none() | st.just("/x")),
    st.tuples(st.just("exit"), st.just(0.0), pids),
)


@given(st.lists(event, max_size=40))
def test_every_exec_is_one_image_and_images_of_a_pid_do_not_overlap(events):
    timed = [(kind, float(number), *rest) for number, (kind, _, *rest) in enumerate(events)]
    found, complaints = images(timed)
    assert complaints == []
    assert len(found) == sum(kind == "exec" for kind, *_ in timed)
    for pid in range(1, 6):
        mine = [image for image in found if image.pid == pid]
        assert all(before.end_s <= after.begin_s for before, after in pairwise(mine))


SCRIPT = """
true_path=$(command -v env)
for i in 1 2 3; do ls / >/dev/null; done
(ls / >/dev/null) | cat >/dev/null
"$true_path" "$true_path" true
sh -c 'ls / > /dev/null & wait'
exec ls / >/dev/null
"""


@pytest.mark.usefixtures("needs_perf", "needs_ptrace")
def test_perf_and_ptrace_count_the_same_programs(run):
    counted = []
    for method in ("perf", "ptrace"):
        reading = run("sh", "-c", SCRIPT, census=method)
        assert (reading.exit_code, reading.census.source, reading.census.complete) == (0, method, True)
        found, complaints = images(reading.census.events)
        assert complaints == []
        counted.append(Counter(image.exe for image in found))
    assert counted[0] == counted[1]
    assert counted[0].total() == 1 + 3 + 2 + 3 + 2 + 1


THREADS = """
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static void *start(void *unused) {
    for (int i = 0; i < 5; i++) {
        pid_t pid = fork();
        if (pid == 0) { if (i % 2) _exit(0); execl("/bin/true", "true", (char *)0); _exit(1); }
        waitpid(pid, 0, 0);
    }
    return 0;
}
int main(void) {
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], 0, start, 0);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
    return 0;
}
"""


@pytest.mark.parametrize("method", ["perf", "ptrace"])
def test_threads_that_fork_are_followed(run, compile_c, method, request):
    request.getfixturevalue(f"needs_{method}")
    program = compile_c(THREADS, "-pthread")
    reading = run(program, census=method)
    found, _ = images(reading.census.events)
    assert reading.census.complete
    assert sum(event[0] == "fork" for event in reading.census.events) == 40
    assert Counter(image.exe and image.exe.rpartition("/")[2] for image in found) == {"program": 1, "true": 24}


@pytest.mark.usefixtures("needs_ptrace")
def test_signals_and_stops_pass_through_ptrace(run, tmp_path):
    script = """
trap 'echo caught' USR1
kill -USR1 $$
sleep 300 & child=$!
kill -STOP $child; sleep 0.1
grep -q '^State:.[Tt]' /proc/$child/status && echo stopped
kill -CONT $child; sleep 0.1
grep -q '^State:.[Tt]' /proc/$child/status || echo continued
kill -TERM $child; wait $child; echo $?
exit 7
"""
    reading = run("sh", "-c", script, census="ptrace")
    assert (tmp_path / "stdout").read_text() == "caught\nstopped\ncontinued\n143\n"
    assert (reading.state, reading.exit_code) == ("exited", 7)


@pytest.mark.usefixtures("needs_ptrace")
def test_a_failed_start_is_told_under_ptrace_too(run):
    assert run("freestone-no-such-command", census="ptrace").state == "not-found"
    assert run("/etc/passwd", census="ptrace").state == "not-executable"


@pytest.mark.usefixtures("needs_ptrace")
def test_a_timeout_ends_a_traced_tree(run):
    reading = run("sh", "-c", "sleep 300 & sleep 300", census="ptrace", timeout_s=0.3)
    assert reading.state == "timeout"
    assert not reading.abandoned


def test_a_census_that_was_not_asked_for_is_none(run):
    assert run("true").census.source == "none"


@pytest.mark.usefixtures("needs_perf")
def test_many_processes_in_a_short_time_are_all_counted(run, compile_c):
    storm = compile_c("""
        #include <sys/wait.h>
        #include <unistd.h>
        int main(void) {
            for (int i = 0; i < 400; i++) {
                if (vfork() == 0) { execl("/bin/true", "true", (char *)0); _exit(1); }
                if (i % 4 == 3) while (wait(0) > 0) {}
            }
            while (wait(0) > 0) {}
            return 0;
        }
    """)
    reading = run(storm, census="perf")
    found, _ = images(reading.census.events)
    assert reading.census.complete, reading.census.reason
    assert len(found) == 401
