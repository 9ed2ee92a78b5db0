"""Children of a parent that ignores SIGCHLD: the kernel adds them to nobody, and no figure is too small for that."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.records.schema import Metrics
from freestone.trials import meters, under_load, witness
from freestone.trials.launch import LaunchReading
from freestone.trials.load_figures import LoadFigures
from freestone.trials.under_load import UnderLoad
from freestone.trials.unwaited import Unwaited, unwaited
from freestone.trials.witness import Departure, Usage, parse

BUSY_S = 0.2

FORKS = r"""
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static void work(double s) { while ((double)clock() / CLOCKS_PER_SEC < s) ; }
int main(int argc, char **argv) {
    struct sigaction how = {.sa_handler = SIG_DFL};
    if (!strcmp(argv[1], "ignores")) how.sa_handler = SIG_IGN;
    if (!strcmp(argv[1], "no zombies")) how.sa_flags = SA_NOCLDWAIT;
    sigaction(SIGCHLD, &how, 0);
    for (int i = 0; i < 3; i++)
        if (fork() == 0) {
            volatile char *block = malloc(8 << 20);
            for (int at = 0; at < 8 << 20; at += 4096) block[at] = 1;
            if (argc > 3) execlp("sh", "sh", "-c", argv[3], (char *)0);
            work(0.2);
            if (i == 2 && !strcmp(argv[2], "killed")) raise(SIGKILL);
            _exit(0);
        }
    while (wait(0) > 0 || errno != ECHILD) ;
    if (!strcmp(argv[2], "wordless")) raise(SIGKILL);
    return 0;
}
"""


@pytest.mark.parametrize("how", ["ignores", "no zombies", "hears"])
def test_what_children_used_is_counted_whoever_waits(attempt, compile_c, how: str) -> None:
    record = attempt(compile_c(FORKS), how, "-")
    assert record.status == "ok", record.reason
    assert record.metrics is not None
    assert record.metrics.cpu_s is not None
    assert record.metrics.cpu_s > 3 * BUSY_S * 0.95
    assert record.metrics.minor_faults is not None
    assert record.metrics.minor_faults > 3 * 8, "pages of 4 KiB to 2 MiB"
    assert record.metrics.peak_rss_kib is not None
    assert record.metrics.peak_rss_kib > 8 << 10
    told = [note for note in record.notes if "SIGCHLD" in note]
    assert told == (
        []
        if how == "hears"
        else [
            "the program ignores SIGCHLD, so the kernel adds 3 processes to nobody: what they used is by their own "
            "last words"
        ]
    )


def test_programs_that_children_execute_are_counted(attempt, compile_c) -> None:
    line = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done"
    heard, ignored = (attempt(compile_c(FORKS), how, "-", line).metrics for how in ("hears", "ignores"))
    assert heard is not None
    assert ignored is not None
    assert heard.cpu_s is not None
    assert ignored.cpu_s is not None
    assert ignored.cpu_s > 0.5 * heard.cpu_s


def test_where_a_child_said_nothing_the_sum_is_left_out(attempt, compile_c, needs_perf) -> None:
    record = attempt(compile_c(FORKS), "ignores", "killed")
    assert record.metrics is not None
    assert record.metrics.wall_s > BUSY_S
    assert record.metrics.cpu_s is None
    assert record.metrics.minor_faults is None
    assert record.metrics.peak_rss_kib is None
    assert any("not all of them said what they used" in note for note in record.notes)


def test_a_parent_without_last_words_is_told_of_by_its_children(attempt, compile_c) -> None:
    """As most servers end: by SIGTERM."""
    record = attempt(compile_c(FORKS), "ignores", "wordless")
    assert record.metrics is not None
    assert record.metrics.cpu_s is not None
    assert record.metrics.cpu_s > 3 * BUSY_S * 0.95


def test_more_than_the_kernel_has_told_of_is_a_contradiction() -> None:
    """Whatever the reason: a parent that ignored SIGCHLD for a while and was killed."""
    said = [_said(2, 1, 1.0), _said(3, 1, 1.0)]
    assert meters.contradiction(Metrics(wall_s=1.0, user_s=2.0, sys_s=0.0), said, 2) is None
    assert meters.contradiction(Metrics(wall_s=1.0, user_s=1.97, sys_s=0.0), said, 2) is None
    untrue = meters.contradiction(Metrics(wall_s=1.0, user_s=1.0, sys_s=0.1), said, 2)
    assert untrue is not None
    assert untrue.startswith(
        "its processes say that they used 2.00 s of processor time, and the kernel has told of 1.10 s"
    )


def test_who_hears_of_his_children_has_lost_none() -> None:
    assert unwaited([_said(1, 0, 1.0), _said(2, 1, 1.0)]) is None
    assert unwaited([_said(1, 0, 1.0, drops=True)]) is None, "without children nothing is lost"


@given(st.lists(st.floats(0, 10), min_size=1, max_size=9), st.floats(0, 9), st.booleans())
def test_the_words_of_a_stretch_of_time_are_added(spent: list[float], since_s: float, by_child: bool) -> None:
    parent = _said(1, 0, 5.0, drops=not by_child)
    children = [_said(10 + n, 1, cpu_s, at_s=float(n), dropped=by_child) for n, cpu_s in enumerate(spent)]
    found = unwaited([parent, *children], since_s=since_s, until_s=9.0)
    expected = [cpu_s for n, cpu_s in enumerate(spent) if since_s <= n <= 9]
    if not expected:
        assert found is None
    else:
        assert found is not None
        assert found.known
        assert found.processes == len(expected)
        assert found.usage.cpu_s == pytest.approx(math.fsum(expected))


def test_one_that_waited_for_some_and_dropped_others_is_not_known() -> None:
    parent = _said(1, 0, 5.0, drops=True, waited=Usage(user_s=1.0))
    found = unwaited([parent, _said(2, 1, 1.0), _said(3, 1, 2.0)])
    assert found is not None
    assert not found.known, "which of them are in the kernel's sum?"


def test_the_census_knows_of_those_who_said_nothing() -> None:
    parent, child = _said(1, 0, 5.0, drops=True, at_s=9.0), _said(2, 1, 1.0, at_s=3.0)
    events = [["exec", 0.0, 1, "x", "/x"], ["fork", 1.0, 2, 1], ["fork", 1.0, 3, 1], ["fork", 1.0, 4, 1],
              ["exit", 3.0, 2], ["exit", 4.0, 3], ["exit", 9.0, 1], ["exit", 9.5, 4]]  # fmt: skip
    found = unwaited([parent, child], events)
    assert found == Unwaited(2, Usage(user_s=1.0), known=False), "3; but 4 fell to the launcher, which waits"
    assert unwaited([parent, child], events, until_s=3.5) == Unwaited(1, Usage(user_s=1.0), known=True)


@pytest.mark.parametrize("lost", [None, Unwaited(3, Usage(1.5, 0.5, minor_faults=300), known=True)])
def test_a_server_s_children_are_in_its_figures(lost: Unwaited | None) -> None:
    told, used = LoadFigures(1000, 0.001, {}), UnderLoad(5.0, 8.0, 3.0, 100, 5000)
    asked: list[tuple[float, float]] = []

    def ask(since_s: float, until_s: float) -> Unwaited | None:
        asked.append((since_s, until_s))
        return lost

    found, _ = under_load.figures(told, used, ask)
    assert found is not None
    assert asked == [(5.0, 8.0)]
    assert found["cpu_seconds"] == pytest.approx(0.003 if lost is None else 0.005)
    assert found["faults_per_1000"] == pytest.approx(100 if lost is None else 400)


def test_a_server_s_figures_that_are_not_known_are_left_out() -> None:
    told, used = LoadFigures(1000, 0.001, {}), UnderLoad(5.0, 8.0, 3.0, 100, 5000)
    found, _ = under_load.figures(told, used, lambda since_s, until_s: Unwaited(1, Usage(), known=False))
    assert found == {"seconds": 0.001, "rss_kib_loaded": 5000.0}


def test_last_words_that_make_no_sense_are_damage() -> None:
    head = "start 1 1 7 1\nend\nexit 1 2 7\nresident 1\n"
    for line in ("spent 1 2 3", "spent x 2 3 4 5", "waited 1 2 3 4 -", "ends 1 sleeps -", "ends x hears -"):
        assert "makes no sense" in (parse(head + line + "\nend\n").damage or "")


def _said(
    pid: int,
    parent: int,
    cpu_s: float,
    *,
    at_s: float = 1.0,
    drops: bool = False,
    dropped: bool = False,
    waited: Usage | None = None,
) -> witness.Testimony:
    departure = Departure(at_s, pid, spent=Usage(user_s=cpu_s), waited=waited or Usage(), parent=parent, drops=drops)
    if dropped:
        departure = Departure(at_s, pid, spent=Usage(user_s=cpu_s), waited=Usage(), parent=parent, dropped=True)
    return witness.Testimony(pid=pid, parent=parent, at_s=0.0, departure=departure)


def test_the_launcher_s_own_sum_is_as_it_was() -> None:
    reading = LaunchReading(version=1, state="exited", pid=1, wall_s=1.0, user_s=0.5, sys_s=0.25, minor_faults=7)
    metrics = meters.read(reading, [])
    assert (metrics.user_s, metrics.sys_s, metrics.minor_faults) == (0.5, 0.25, 7)
