"""What a tree of processes has used: no look at it loses or doubles anybody, and what may be missing is said."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.trials import process, tree, under_load
from freestone.trials.load_figures import LoadFigures
from freestone.trials.process import TICK_S, Process
from freestone.trials.tree import TreeReading
from freestone.trials.under_load import UnderLoad

TOP = 1
LITTLE_S = 1e-9

# --- a machine on which things happen between any two looks at a process


@dataclass
class Simulated:
    """Processes below :data:`TOP`. Before each answer one more event of the course takes place."""

    course: list[tuple[str, int]]
    lists: bool
    """Whether it keeps lists of children."""
    exact: bool = True
    """Whether its clocks can be read."""
    living: dict[int, Process] = field(default_factory=lambda: {TOP: Process(TOP, started=0)})
    born: int = TOP

    def process(self, number: int) -> Process | None:
        self.go_on()
        found = self.living.get(number)
        return None if found is None else self.shown(found)

    def children(self, number: int) -> list[int] | None:
        self.go_on()
        if not self.lists:
            return None
        return [each.pid for each in self.living.values() if each.parent == number]

    def everybody(self) -> list[Process]:
        numbers = sorted(self.living, reverse=True)  # numbers begin anew: children may come before their parents
        return [found for number in numbers if (found := self.process(number)) is not None]

    def used_s(self) -> float:
        """The truth."""
        return sum(each.children_cpu_s + (0.0 if each.pid == TOP else each.cpu_s) for each in self.living.values())

    def shown(self, true: Process) -> Process:
        def floor(seconds: float) -> float:
            """Half of it in the program and half in the kernel, each in whole ticks."""
            return 2 * TICK_S * int(seconds / 2 / TICK_S + 1e-6)

        shown = replace(true, children_cpu_s=floor(true.children_cpu_s))
        if self.exact:
            return shown
        return replace(shown, cpu_s=floor(true.cpu_s), cpu_lacks_s=2 * TICK_S)

    def go_on(self) -> None:
        if self.course:
            self.happens(*self.course.pop(0))

    def happens(self, what: str, which: int) -> None:
        numbers = sorted(self.living)
        one = self.living[numbers[which % len(numbers)]]
        if what == "fork" and len(numbers) < 12:
            self.born += 1
            self.living[self.born] = Process(self.born, started=self.born, parent=one.pid, minor_faults=1)
        elif what == "burn":
            self.living[one.pid] = replace(one, cpu_s=one.cpu_s + 0.013)
        elif what == "end" and one.pid != TOP:
            del self.living[one.pid]
            for orphan in [each for each in self.living.values() if each.parent == one.pid]:
                self.living[orphan.pid] = replace(orphan, parent=TOP)
            waiting = self.living[one.parent]
            self.living[one.parent] = replace(
                waiting,
                children_cpu_s=waiting.children_cpu_s + one.cpu_s + one.children_cpu_s,
                children_minor_faults=waiting.children_minor_faults + one.minor_faults + one.children_minor_faults,
            )


LIVE = st.tuples(st.sampled_from(["fork", "burn", "burn"]), st.integers(0, 11))
END = st.tuples(st.just("end"), st.integers(0, 11))


@st.composite
def courses(draw: st.DrawFn, most_ends: int) -> list[tuple[str, int]]:
    course = draw(st.lists(LIVE, max_size=40))
    for end in draw(st.lists(END, max_size=most_ends)):
        course.insert(draw(st.integers(0, len(course))), end)
    return course


def began(before: list[tuple[str, int]], course: list[tuple[str, int]], lists: bool, exact: bool) -> Simulated:
    found = Simulated(course, lists, exact)
    for event in [("fork", 0), ("fork", 1), ("burn", 1), *before]:
        found.happens(*event)
    return found


@given(st.lists(LIVE | END, max_size=30), courses(30), st.booleans(), st.booleans())
def test_no_reading_holds_more_than_was_used(before, course, lists, exact):
    machine = began(before, course, lists, exact)
    assert tree.read(TOP, machine).cpu_s <= machine.used_s() + LITTLE_S


@given(st.lists(LIVE | END, max_size=30), courses(3), st.booleans(), st.booleans())
def test_a_reading_lacks_no_more_than_it_says_though_processes_end_meanwhile(before, course, lists, exact):
    machine = began(before, course, lists, exact)
    used_s = machine.used_s()
    found = tree.read(TOP, machine)
    assert found.cpu_s + found.cpu_lacks_s >= used_s - LITTLE_S


@given(st.lists(LIVE | END, max_size=30), st.lists(LIVE | END, max_size=30), st.booleans())
def test_a_difference_is_wrong_by_no_more_than_its_error(before, between, exact):
    machine = began(before, [], lists=True, exact=exact)
    first, first_s = tree.read(TOP, machine), machine.used_s()
    for event in between:
        machine.happens(*event)
    used = UnderLoad.between(0.0, first, 1.0, tree.read(TOP, machine))
    assert abs(used.cpu_s - (machine.used_s() - first_s)) <= used.cpu_error_s + LITTLE_S


NANOSECONDS = st.integers(0, 10**11).map(lambda count: count / 1e9)
"""What the kernel's clocks count in, as seconds."""


@given(NANOSECONDS, st.floats(0, 1))
def test_a_figure_that_may_be_wrong_by_more_than_a_hundredth_is_left_out_and_named(cpu_s, lacks_s):
    before, after = TreeReading(), TreeReading(cpu_s=cpu_s, cpu_lacks_s=lacks_s)
    used = UnderLoad.between(0.0, before, 1.0, after)
    found, said = under_load.figures(LoadFigures(100, 0.01, {}), used, lambda since_s, until_s: None)
    assert found is not None
    if cpu_s > 0 and lacks_s <= 0.01 * cpu_s:
        assert (found["cpu_seconds"], said) == (cpu_s / 100, [])
    else:
        assert "cpu_seconds" not in found
        assert [note.startswith("CPU/request is left out: ") for note in said] == [True]


def test_a_reading_that_never_holds_says_what_its_looks_differ_by():
    """Children without end: a look in which one is lost is told by the one in which it is not."""
    course = [event for _ in range(200) for event in (("fork", 0), ("burn", 11), ("burn", 11), ("end", 11))]
    found = tree.read(TOP, began([], course, lists=True, exact=True))
    assert found.cpu_lacks_s > 2 * TICK_S


# --- this machine

WORKERS = r"""
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/resource.h>
    #include <sys/wait.h>
    #include <time.h>
    #include <unistd.h>
    static double used_s(void) {
        struct timespec now;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
        return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    }
    static double told_s(int whose) {
        struct rusage told;
        getrusage(whose, &told);
        return (double)(told.ru_utime.tv_sec + told.ru_stime.tv_sec)
            + (double)(told.ru_utime.tv_usec + told.ru_stime.tv_usec) * 1e-6;
    }
    int main(void) {
        int until[2];
        pipe(until);
        char byte;
        for (int worker = 0; worker < 40; worker++)
            if (fork() == 0) {
                close(until[1]);
                while (used_s() < 0.0195) getppid();
                write(STDOUT_FILENO, ".", 1);
                read(until[0], &byte, 1);
                _exit(0);
            }
        read(STDIN_FILENO, &byte, 1);
        close(until[1]);
        while (wait(NULL) > 0) { }
        printf("%f\n", told_s(RUSAGE_SELF) + told_s(RUSAGE_CHILDREN));
    }
"""


def test_what_many_processes_used_is_what_the_kernel_tells_of_them_at_their_end(compile_c):
    """Each of them used less than two steps of the kernel's clock, in the program and in the kernel."""
    command = ["sh", "-c", f"{compile_c(WORKERS)}; true"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        assert shell.stdout.read(40) == b"." * 40
        found = tree.read(shell.pid)
        told, _ = shell.communicate()
    assert (found.processes, found.cpu_lacks_s) == (41, 0.0)
    assert 0.95 < found.cpu_s / float(told) <= 1.0


ENDED_THREADS = r"""
    #include <pthread.h>
    #include <stdio.h>
    #include <time.h>
    #include <unistd.h>
    static void *work(void *unused) {
        struct timespec now = {0};
        while (now.tv_nsec < 35000000 && now.tv_sec == 0) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return unused;
    }
    int main(void) {
        pthread_t thread;
        for (int each = 0; each < 10; each++) {
            pthread_create(&thread, 0, work, 0);
            pthread_join(thread, 0);
        }
        puts("done");
        fflush(stdout);
        pause();
    }
"""


@pytest.mark.parametrize("clock", [True, False])
def test_threads_that_have_ended_are_in_what_their_process_used(compile_c, monkeypatch, clock):
    program = compile_c(ENDED_THREADS, "-pthread")
    if not clock:
        monkeypatch.setattr(process, "_clock_s", lambda number: None)
    with subprocess.Popen([program], stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"done\n"
        found = tree.alone(worker.pid)
        ticks = Path(f"/proc/{worker.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        worker.kill()
    assert found.cpu_lacks_s == (0.0 if clock else 2 * TICK_S)
    assert found.cpu_s + found.cpu_lacks_s >= 0.35
    assert abs(found.cpu_s - TICK_S * sum(map(int, ticks))) <= 2 * TICK_S
