"""How libfreestone scales: what was counted is read right, and the simulator gives what is known of queues."""

from __future__ import annotations

import platform
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scale import __main__ as tool
from scale import counted
from scale.__main__ import CALL_NS, HANDOVER_NS, HEAPS, PATTERNS, THREADS, Run
from scale.contention import Outcome, Prices, Step, play, scripts
from scale.counted import ARENA, GROWING, HEAP, OTHER, Counted, Event, Lock, NotCounted, Site

LOCK = 7
WRITTEN = "\n".join(
    [
        "site\t/src/thread_inside.h\t&cache->busy\t10\t10\t10\t0",
        "site\t/src/thread_cache.c\t&registry.orphans\t10\t0\t0\t4",
        "site\t/other/thread_cache.c\t&registry.orphans\t2\t0\t0\t1",
        "site\t/src/lock.h\t&lock->state\t0\t0\t8\t3",
        "lock\t1\t/src/heap.c\t&home->lock\t6\t2",
        "lock\t2\t/src/arena.c\t&arena.lock\t2\t1",
        "take\t0\t5\t1",
        "free\t0\t5\t1",
        "lost\t0",
        "calls\t500",
    ]
)


def together(steps: Sequence[Sequence[Step]], call_ns: float, hold_ns: float, handover_ns: float = 0.0) -> Outcome:
    return play(steps, Prices(call_ns, {LOCK: hold_ns}, handover_ns))


def taking(calls: Sequence[float]) -> list[Step]:
    """A thread that takes and frees the lock after so many calls each time."""
    return [step for each in calls for step in (Step(each, LOCK, True), Step(0, LOCK, False))]


# -- what was counted --------------------------------------------------------------------------------------------------


def test_what_a_run_wrote_is_read_for_a_million_calls() -> None:
    found = counted.read(WRITTEN)
    assert found.slow_paths == 10 * 2000
    assert (found.taken(HEAP), found.handovers(HEAP)) == (12_000, 4_000)
    assert (found.taken(ARENA), found.handovers(ARENA), found.taken(OTHER)) == (4_000, 2_000, 0)
    assert found.events == (Event(True, 0, 5, 1), Event(False, 0, 5, 1))


def test_one_place_in_two_sources_is_one_and_a_locks_line_is_counted_as_a_handover_only() -> None:
    found = counted.read(WRITTEN)
    assert found.travels == 5 * 2000
    assert [(site.name, travels) for site, travels in found.most_travelled(3)] == [
        ("thread_cache.c: &registry.orphans", 10_000)
    ]


@pytest.mark.parametrize("text", ["", "calls\t500", WRITTEN.replace("lost\t0", "lost\t3"), "lost\t0"])
def test_a_count_that_is_not_whole_is_refused(text: str) -> None:
    with pytest.raises(NotCounted):
        counted.read(text)


@pytest.mark.parametrize(
    ("file", "expression", "kind"),
    [
        ("heap.c", "&owner->lock", HEAP),
        ("arena.c", "&arena.lock", ARENA),
        ("arena.c", "&arena.growing", GROWING),
        ("street.c", "&bookkeeping.growing", GROWING),
        ("street.c", "&bookkeeping.lock", OTHER),
        ("hard_shard.c", "&shard->lock", OTHER),
    ],
)
def test_a_lock_is_of_the_kind_that_its_first_taker_names(file: str, expression: str, kind: str) -> None:
    assert counted.kind_of(file, expression) == kind


def test_every_lock_that_the_library_takes_by_a_pointer_in_those_files_is_a_heaps(repository: Path) -> None:
    others = ("&registry.lock", "&choice", "&table.lock", "&arena.lock")
    for name in counted.HEAP_FILES:
        text = (repository / "allocator" / "src" / name).read_text(encoding="utf-8")
        taken = [line for line in text.splitlines() if "lock_take(" in line or "lock_take_within(" in line]
        assert taken, f"{name} takes no lock any more"
        assert not [line for line in taken if any(other in line for other in others)]


def test_system_calls_are_those_of_all_kinds() -> None:
    found = counted.read(WRITTEN + "\ncall\tmmap\t1\ncall\tmadvise\t2")
    assert found.asked == Counter(mmap=1, madvise=2)
    assert found.system_calls == 6000


# -- the simulator -----------------------------------------------------------------------------------------------------


def test_one_thread_never_waits() -> None:
    outcome = together([taking([3] * 50)], call_ns=10, hold_ns=10)
    assert outcome.waiting == 0
    assert outcome.held == pytest.approx(10 / 40)
    assert outcome.busiest == LOCK


def test_threads_that_do_nothing_but_hold_one_lock_wait_all_of_their_time_but_their_share() -> None:
    for threads in (2, 8, 64):
        outcome = together([taking([0] * 500)] * threads, call_ns=1, hold_ns=10)
        assert outcome.waiting == pytest.approx(1 - 1 / threads, abs=0.01)
        assert outcome.held == pytest.approx(1)


def test_threads_on_locks_of_their_own_never_wait() -> None:
    steps = [[Step(1, lock, takes) for _ in range(20) for takes in (True, False)] for lock in range(8)]
    assert play(steps, Prices(1, dict.fromkeys(range(8), 100.0), 100)).waiting == 0


def test_a_handover_lengthens_the_hold_of_who_was_not_the_last() -> None:
    alone = together([taking([1] * 100)], call_ns=10, hold_ns=10, handover_ns=1000)
    assert alone.held == pytest.approx(0.5)
    both = together([taking([1] * 100)] * 2, call_ns=10, hold_ns=10, handover_ns=1000)
    assert both.waiting == pytest.approx(0.5, abs=0.02)


def test_an_inner_lock_lengthens_the_hold_of_the_outer_one() -> None:
    inner, outer = 1, 2
    nested = [Step(10, outer, True), Step(0, inner, True), Step(0, inner, False), Step(0, outer, False)]
    outcome = play([nested], Prices(1, {inner: 20.0, outer: 10.0}, 0))
    assert (outcome.busiest, outcome.held) == (outer, pytest.approx(30 / 40))


@pytest.mark.parametrize("threads", [2, 5, 12])
def test_exponential_calls_and_holds_are_the_machine_repair_model(threads: int) -> None:
    """M/M/1//N: with N machines, mean time to a failure 1/l, to a repair 1/m, P0 = 1 / sum N!/(N-n)! (l/m)^n."""
    chance, think, hold, times = random.Random(1), 100.0, 20.0, 8000
    steps = []
    for _ in range(threads):
        mine = []
        for _ in range(times):
            # Holds are drawn too, as calls made meanwhile.
            mine += [Step(chance.expovariate(1 / think), LOCK, True), Step(chance.expovariate(1 / hold), LOCK, False)]
        steps.append(mine)
    outcome = together(steps, call_ns=1, hold_ns=0)
    terms = [1.0]
    for number in range(threads):
        terms.append(terms[-1] * (threads - number) * hold / think)
    busy = 1 - 1 / sum(terms)
    cycle = threads * hold / busy  # of one thread: its calls, its waiting, its hold
    assert outcome.waiting == pytest.approx((cycle - think - hold) / cycle, abs=0.015)
    assert outcome.held == pytest.approx(busy, abs=0.03)


def test_many_threads_that_seldom_take_a_lock_for_the_same_time_are_an_m_d_1_queue() -> None:
    """The mean wait is load * hold / (2 (1 - load)), of arrivals by chance (Pollaczek and Khinchine)."""
    chance, threads, hold, load, times = random.Random(2), 400, 1.0, 0.5, 150
    think = threads * hold / load - hold
    steps = [taking([chance.expovariate(1 / think) for _ in range(times)]) for _ in range(threads)]
    wait = together(steps, call_ns=1, hold_ns=hold).waiting * (think + hold)
    assert wait == pytest.approx(load * hold / (2 * (1 - load)), rel=0.1)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=30), st.integers(0, 20), st.integers(0, 20))
def test_what_a_thread_plays_frees_exactly_what_it_takes(holds: list[tuple[int, int]], begin: int, end: int) -> None:
    """Wherever counting began and ended: in the middle of a hold too."""
    whole = [Event(takes, thread, call, lock) for call, (thread, lock) in enumerate(holds) for takes in (True, False)]
    for steps in scripts(whole[begin : len(whole) - end], threads=4):
        for lock in {step.lock for step in steps}:
            turns = [step.takes for step in steps if step.lock == lock]
            assert turns == [True, False] * (len(turns) // 2)


# -- the page ----------------------------------------------------------------------------------------------------------


def test_the_page_has_the_tables_with_a_row_for_each_pattern_and_number_of_heaps(repository: Path) -> None:
    outcome = {(call, handover): (Outcome(0.25, 0.9, 1), HEAP) for call in CALL_NS for handover in HANDOVER_NS}
    sites = (Site("thread_inside.h", "&cache->busy", 0, 20, 0), Site("thread_cache.c", "&registry.orphans", 9, 0, 5))
    run = Run(Counted(1_000_000, sites, (Lock(1, HEAP, 10, 5), Lock(2, ARENA, 1, 1))), outcome)
    runs = {(pattern, heaps, threads): run for pattern in PATTERNS for heaps in HEAPS for threads in THREADS}
    parts = tool.parts(runs, {(pattern, kind): 500.0 for pattern in PATTERNS for kind in (HEAP, ARENA)})
    for pattern in PATTERNS:
        for heaps in HEAPS:
            assert f"| {pattern}, {heaps} | 10 · 10 · 10 | 10 · 10 · 10 | 5 · 5 · 5 | 1 · 1 · 1 |" in parts["counts"]
            assert f"| {pattern}, {heaps} | 25 % (heap 90 %) |" in parts["waiting"]
    assert "| `thread_cache.c: &registry.orphans` | 5 | 5 | 5 |" in parts["places"]
    assert "| churn | 500 | 500 |" in parts["held"]
    page = (repository / "docs" / "scale.md").read_text(encoding="utf-8")
    assert set(re.findall(r"<!-- made by make scale: (.*) -->", page)) == {"origin", *parts}


# -- the library that counts -------------------------------------------------------------------------------------------


def test_the_product_has_nothing_of_the_counters(repository: Path) -> None:
    """No source knows of them: they come by a file that is included before each, where the option asks for it."""
    sources = (repository / "allocator" / "src").glob("*.[ch]")
    assert not [path.name for path in sources if "counting" in path.read_text(encoding="utf-8").lower()]
    made = (repository / "allocator" / "CMakeLists.txt").read_text(encoding="utf-8")
    parts = made.split("if(FREESTONE_COUNTING)")
    assert len(parts) == 3
    assert not [
        part for part in (parts[0], *(part.split("endif()", 1)[1] for part in parts[1:])) if "tests/counting" in part
    ]


@pytest.fixture(scope="module")
def counting(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(repository, tmp_path_factory.mktemp("counting"), "ON")


def built(repository: Path, folder: Path, option: str) -> Path:
    made = ["cmake", "-S", str(repository), "-B", str(folder), "-G", "Ninja", f"-DFREESTONE_COUNTING={option}"]
    subprocess.run(made, check=True, capture_output=True)
    subprocess.run(["ninja", "-C", str(folder), "freestone"], check=True, capture_output=True)
    return folder / "libfreestone.so"


@pytest.mark.long
@pytest.mark.skipif(not all(map(shutil.which, ("ninja", "gcc"))), reason="a tool is not here")
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_word_that_every_slow_path_reads_stays_in_all_caches(counting: Path, tmp_path: Path, pattern: str) -> None:
    """With as many heaps as threads, and without a keeper; but for tables, whose words change with slabs."""
    program = tool.build(tmp_path)
    found = tool.lockstep(program, counting, 64, (pattern, "64", "20000", "5000"))
    slow = sum(site.changes for site in found.sites if site.place == "&cache->busy") // 2
    read = [site for site in found.sites if site.loads >= slow and site.changes == 0 and "[" not in site.place]
    assert {"&registry.orphans", "&keeper_wished"} <= {site.place for site in read}
    assert not [site for site in read if site.travels > slow / 20]
    # A word that each slow path reads and others write would add one for each. Words that change by the clock travel
    # more on a slow machine: 1.24 times on the same library that once had less than 1.
    assert found.travels < 1.5 * found.slow_paths


@pytest.mark.long
@pytest.mark.skipif(platform.machine() != "x86_64", reason="instructions are counted on x86-64")
@pytest.mark.skipif(not all(map(shutil.which, ("ninja", "gcc", "valgrind"))), reason="a tool is not here")
def test_a_little_of_everything_is_counted(repository: Path, counting: Path, tmp_path: Path) -> None:
    product = built(repository, tmp_path, "OFF")
    names = subprocess.run(["nm", str(product)], check=True, capture_output=True, text=True).stdout
    assert "counting" not in names
    done = subprocess.run(
        [sys.executable, "-m", "scale", "--quick", f"--library={counting}"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{repository / 'tools'}:{repository / 'src'}"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "| churn, 64 |" in done.stdout
