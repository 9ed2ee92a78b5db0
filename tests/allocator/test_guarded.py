"""Sampled guards: what a person reads when a guarded block was misused, and how often one is."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from math import comb
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

BUGS = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, visibility("default")))

KEPT char *make(size_t size) { return malloc(size); }
KEPT void drop(char *block) { free(block); __asm__ volatile(""); }
KEPT void touch(volatile char *at) { *at = 1; }
KEPT int look(volatile char *at) { return *at; }

static void own_handler(int number) { write(2, "own handler\n", 12); _exit(number == SIGSEGV ? 41 : 42); }

int main(int count, char **arguments) {
    const char *bug = arguments[1];
    size_t size = strtoul(arguments[2], NULL, 10);
    if (count > 3) { signal(SIGSEGV, own_handler); }
    /* What was freed before the library had looked for what unwinds is taken first, unguarded. */
    for (int i = 0; i < 20 && size < 8192; i++) { make(size); }
    char *block = make(size);
    if (!strcmp(bug, "over")) { for (size_t i = 0; i < 4096 + 16; i++) { touch(block + size + i); } }
    if (!strcmp(bug, "under")) { for (size_t i = 1; i < 4096 + 16; i++) { touch(block - i); } }
    if (!strcmp(bug, "write-after")) { drop(block); touch(block + size / 2); }
    if (!strcmp(bug, "read-after")) { drop(block); look(block + size - 1); }
    if (!strcmp(bug, "twice")) { drop(block); drop(block); }
    if (!strcmp(bug, "inside")) { drop(block + 8); }
    if (!strcmp(bug, "margin")) { memset(block, 1, size); touch(block + size); drop(block); }
    if (!strcmp(bug, "null")) { touch(0); }
    puts("alive");
    return 0;
}
"""

COUNTS = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <fcntl.h>
#include <unistd.h>

#include "freestone.h"

#pragma weak freestone_stats_read

enum { ROW = 64, HELD = 200, THREADS = 4, HUNDRED = 100 };

static struct freestone_stats stats(void) {
    struct freestone_stats now;
    freestone_stats_read(&now);
    return now;
}

static uint64_t next(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *state >> 33;
}

static size_t small(uint64_t *state) { return next(state) % 100 + 1; }
static size_t any_size(uint64_t *state) { return next(state) % ((size_t)16 << next(state) % 11) + 1; }

/* Each makes `most` blocks or a few more, and returns how many. */
static long kept(long most, uint64_t *state) {
    for (long i = 0; i < most; i++) { *(char *volatile *)malloc(sizeof(char *) + small(state)) = 0; }
    return most;
}

static long pair(long most, uint64_t *state) {
    (void)state;
    for (long i = 0; i < most; i++) { free(malloc(40)); }
    return most;
}

static long fifo(long most, uint64_t *state) {
    void *row[ROW] = {0};
    for (long i = 0; i < most; i++) {
        free(row[i % ROW]);
        row[i % ROW] = malloc(small(state));
    }
    for (int i = 0; i < ROW; i++) { free(row[i]); }
    return most;
}

static long cleared(long most, uint64_t *state) {
    void *row[ROW] = {0};
    for (long i = 0; i < most; i++) {
        free(row[i % ROW]);
        row[i % ROW] = calloc(1, small(state));
    }
    for (int i = 0; i < ROW; i++) { free(row[i]); }
    return most;
}

/* A block that moves is one more; one that can grow in its place is not. */
static long grown(long most, uint64_t *state) {
    (void)state;
    long made = 0;
    while (made < most) {
        char *block = malloc(16);
        made++;
        for (size_t size = 24; size < 5000; size += size / 2) {
            uintptr_t before = (uintptr_t)block;
            block = realloc(block, size);
            made += (uintptr_t)block != before;
        }
        free(block);
    }
    return made;
}

/* Of every size up to 16 KiB, freed in any order. */
static long mixed(long most, uint64_t *state) {
    void *held[HELD] = {0};
    for (long i = 0; i < most; i++) {
        void **one = &held[next(state) % HELD];
        free(*one);
        *one = malloc(any_size(state));
    }
    for (int i = 0; i < HELD; i++) { free(held[i]); }
    return most;
}

/* The last is freed first. */
static long stacked(long most, uint64_t *state) {
    long made = 0;
    while (made < most) {
        void *stack[20];
        int depth = (int)(next(state) % 20) + 1;
        for (int i = 0; i < depth; i++) { stack[i] = malloc(any_size(state)); }
        for (int i = depth; i > 0; i--) { free(stack[i - 1]); }
        made += depth;
    }
    return made;
}

/* Of one size, the oldest freed first; and of the same twenty sizes each time, the last freed first: no magazine is
 * loaded anew. */
static long row(long most, uint64_t *state) {
    (void)state;
    void *row[ROW] = {0};
    for (long i = 0; i < most; i++) {
        free(row[i % ROW]);
        row[i % ROW] = malloc(40);
    }
    for (int i = 0; i < ROW; i++) { free(row[i]); }
    return most;
}

static long piled(long most, uint64_t *state) {
    (void)state;
    long made = 0;
    for (; made < most; made += 20) {
        void *pile[20];
        for (int i = 0; i < 20; i++) { pile[i] = malloc((size_t)(i * 7 % 20) * 50 + 10); }
        for (int i = 20; i > 0; i--) { free(pile[i - 1]); }
    }
    return made;
}

struct share { long most, made; uint64_t state; };

static void *work(void *argument) {
    struct share *share = argument;
    share->made = mixed(share->most, &share->state);
    return NULL;
}

static long threads(long most, uint64_t *state) {
    pthread_t thread[THREADS];
    struct share share[THREADS];
    long made = 0;
    for (int i = 0; i < THREADS; i++) {
        share[i] = (struct share){most / THREADS, 0, next(state)};
        pthread_create(&thread[i], NULL, work, &share[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        made += share[i].made;
    }
    return made;
}

static const struct { const char *name; long (*run)(long most, uint64_t *state); } loops[] = {
    {"kept", kept}, {"pair", pair}, {"fifo", fifo}, {"cleared", cleared}, {"grown", grown}, {"mixed", mixed},
    {"stacked", stacked}, {"row", row}, {"piled", piled}, {"threads", threads},
};

/* In a child: a hundred blocks, one after the other, of which one is written beyond; ended by the report, or not. */
static void plant(int bad) {
    int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, 2);
    for (int i = 0; i < HUNDRED; i++) {
        char *volatile block = malloc(40);
        if (i == bad) { block[40] = 1; }
        free(block);
    }
    _exit(0);
}

/* So many children: in how many the bad block is found. What a child draws goes on from where its parent was, who draws
 * once for each: so no two children have the same number for that block. */
static int planted(int runs, int bad) {
    int found = 0;
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    for (int run = 0; run < runs; run++) {
        free(malloc(40));
        usleep(1000); /* when that was guarded, one more may be again */
        pid_t child = fork();
        if (child == 0) { plant(bad); }
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child) { return 1; }
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) {
            found++;
        } else if (status != 0) {
            return 2;
        }
    }
    printf("%d\n", found);
    return 0;
}

int main(int count, char **arguments) {
    long number = strtol(arguments[2], NULL, 10);
    uint64_t state = 7;
    if (!strcmp(arguments[1], "planted")) { return planted((int)number, atoi(arguments[3])); }
    if (!strcmp(arguments[1], "first")) { /* of how many the first is drawn */
        struct freestone_stats before = stats(), now = before;
        long made = 0;
        for (; now.guarded + now.unguarded == before.guarded + before.unguarded; now = stats(), made++) {
            free(malloc(40));
        }
        printf("%ld\n", made);
        return 0;
    }
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) {
        if (strcmp(arguments[1], loops[i].name)) { continue; }
        struct freestone_stats before = stats();
        long made = 0;
        if (count < 4) {
            made = loops[i].run(number, &state);
        } else { /* until so many are guarded */
            size_t enough = before.guarded + (size_t)strtol(arguments[3], NULL, 10);
            for (time_t end = time(NULL) + 60; stats().guarded < enough && time(NULL) < end;) {
                made += loops[i].run(number, &state);
            }
        }
        struct freestone_stats after = stats();
        printf("{\"made\": %ld, \"guarded\": %zu, \"unguarded\": %zu}\n", made, after.guarded - before.guarded,
               after.unguarded - before.unguarded);
        return 0;
    }
    return 2;
}
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    folder = tmp_path_factory.mktemp("guarded")
    include = f"-I{repository / 'allocator' / 'include'}"
    for name, text in (("bugs", BUGS), ("counts", COUNTS)):
        (folder / f"{name}.c").write_text(text)
        subprocess.run(
            ["gcc", "-O1", "-g", "-fno-builtin", "-rdynamic", "-pthread", include, f"{name}.c", "-o", name],
            cwd=folder,
            check=True,
        )
    return folder


def run(library: Path, options: str, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {"LD_PRELOAD": str(library), "FREESTONE_OPTIONS": options, "LC_ALL": "C"}
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("size", [1, 40, 5000, 600_000])
@pytest.mark.parametrize(
    ("bug", "line", "traces", "ending"),
    [
        ("over", r"overflow: pointer 0x\w+, \d+ bytes? behind the end of", ["written", "allocated"], signal.SIGSEGV),
        ("under", r"underflow: pointer 0x\w+, \d+ bytes? before", ["written", "allocated"], signal.SIGSEGV),
        (
            "write-after",
            r"use after free: pointer 0x\w+, byte \d+ of",
            ["written", "allocated", "freed"],
            signal.SIGSEGV,
        ),
        ("read-after", r"use after free: pointer 0x\w+, byte \d+ of", ["read", "allocated", "freed"], signal.SIGSEGV),
        ("twice", r"double free: pointer 0x\w+, byte 0 of", ["freed again", "allocated", "freed"], signal.SIGABRT),
        ("inside", r"invalid free: pointer 0x\w+, .*", ["freed", "allocated"], signal.SIGABRT),
    ],
)
def test_a_report_tells_who_did_what_to_which_block(
    programs: Path, freestone_library: Path, bug: str, line: str, traces: list[str], ending: signal.Signals, size: int
) -> None:
    ended = run(freestone_library, "guard=1", str(programs / "bugs"), bug, str(size))
    assert ended.returncode == -ending, ended.stderr
    said = ended.stderr.splitlines()
    block = "1 byte" if size == 1 else f"{size} bytes"
    assert re.fullmatch(rf"freestone: {line} a block of {block} at 0x\w+", said[0]) or (bug, size) == ("inside", 1), (
        said[0]
    )
    heads = [each.removeprefix("freestone: ") for each in said[1:] if not each.startswith("freestone:   ")]
    assert [head.split(" by thread ")[0] for head in heads] == traces
    assert ended.stderr.count(" in make+") == 1
    assert ended.stderr.count(" in drop+") == {"twice": 2, "inside": 1}.get(bug, bug.endswith("-after"))
    if ending == signal.SIGSEGV:
        assert said[2].startswith("freestone:   at 0x")
        first = said[3]
        assert re.match(rf"freestone:   #0 0x\w+ in {'look' if 'read' in bug else 'touch'}\+\d+ \(", first), first


def test_what_was_written_beside_a_block_is_found_when_it_is_freed(programs: Path, freestone_library: Path) -> None:
    """On the last page the block ends at no page's end: 40 bytes lie before the next 16."""
    for _ in range(8):
        ended = run(freestone_library, "guard=1", str(programs / "bugs"), "margin", "40")
        assert ended.returncode == -signal.SIGABRT
        assert "1 byte behind the end of a block of 40 bytes" in ended.stderr
        assert "was written before it was freed" in ended.stderr


@pytest.mark.parametrize("bug", ["over", "under", "write-after", "read-after", "twice", "inside", "margin"])
def test_a_process_that_is_to_go_on_reports_once_and_goes_on(programs: Path, freestone_library: Path, bug: str) -> None:
    ended = run(freestone_library, "guard=1,guard_recover=1", str(programs / "bugs"), bug, "40")
    assert (ended.returncode, ended.stdout) == (0, "alive\n"), ended.stderr
    assert len(re.findall(r" a block of ", ended.stderr)) == 1


@pytest.mark.parametrize(("bug", "reported"), [("over", True), ("write-after", True), ("null", False)])
def test_the_programs_own_handler_comes_after_the_report(
    programs: Path, freestone_library: Path, bug: str, reported: bool
) -> None:
    """It was set before the block was made: whoever is found there when one is guarded is next."""
    ended = run(freestone_library, "guard=1", str(programs / "bugs"), bug, "40", "handler")
    assert ended.returncode == 41, ended.stderr
    assert ended.stderr.endswith("own handler\n")
    assert ("freestone: " in ended.stderr) is reported


def test_a_fault_that_is_none_of_ours_ends_the_program_as_ever(programs: Path, freestone_library: Path) -> None:
    ended = run(freestone_library, "guard=1", str(programs / "bugs"), "null", "40")
    assert (ended.returncode, ended.stderr) == (-signal.SIGSEGV, "")


def told(library: Path, options: str, programs: Path, *words: str) -> Any:
    ended = run(library, options, str(programs / "counts"), *words)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def deviations(seen: int, tries: int, chance: float) -> float:
    """How many standard deviations of a binomial distribution lie between what was seen and what is expected."""
    return (seen - tries * chance) / (tries * chance * (1 - chance)) ** 0.5


LOOPS = ["kept", "pair", "fifo", "cleared", "grown", "mixed", "stacked", "threads"]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("every", [10, 100])
def test_each_allocation_is_drawn_with_one_chance_in_so_many(
    programs: Path, freestone_library: Path, every: int, loop: str
) -> None:
    """Up to a hundred, whatever serves it and whatever was freed before. Not all have a place, but all are counted.

    Of 5,000 that are expected a rate wrong by 7 % is told from a right one.
    """
    counts = told(freestone_library, f"guard={every}", programs, loop, str(5000 * every))
    drawn = counts["guarded"] + counts["unguarded"]
    assert abs(deviations(drawn, counts["made"], 1 / every)) <= 5, counts
    assert counts["guarded"] >= 20, counts


@pytest.mark.parametrize("loop", LOOPS)
def test_each_is_sampled_if_asked(programs: Path, freestone_library: Path, loop: str) -> None:
    """Beside what the loop makes, a thread that starts makes a block or two."""
    counts = told(freestone_library, "guard=1", programs, loop, "20000")
    more = counts["guarded"] + counts["unguarded"] - counts["made"]
    assert 0 <= more <= (12 if loop == "threads" else 0), counts


def test_one_in_a_thousand_of_blocks_that_stay_is_sampled(programs: Path, freestone_library: Path) -> None:
    """Magazines end early where one is drawn: of the few blocks in sight at their top none is."""
    counts = told(freestone_library, "guard=1000", programs, "kept", "1000000")
    drawn = counts["guarded"] + counts["unguarded"]
    assert abs(deviations(drawn, counts["made"], 1 / 1000)) <= 5, counts
    assert counts["guarded"] >= 20, counts


@pytest.mark.parametrize("loop", ["pair", "row", "piled"])
def test_a_loop_that_takes_what_it_has_freed_is_sampled(programs: Path, freestone_library: Path, loop: str) -> None:
    """It comes to no early end of a magazine: the keeper summons it. Given up after a minute."""
    counts = told(freestone_library, "guard=1000", programs, loop, "1000000", "60")
    assert counts["guarded"] >= 60, counts


def test_a_loop_is_sampled_that_writes_over_its_summons(programs: Path, freestone_library: Path) -> None:
    """What the keeper writes into its magazines is mostly lost, and nothing else brings the thread inside."""
    guarded = runs = 0
    while guarded < 20 and runs < 100:  # how many summons fall into a run is a matter of how fast the machine is
        guarded += told(freestone_library, "guard=1000", programs, "pair", "100000000")["guarded"]
        runs += 1
    assert guarded >= 20, runs


def test_places_are_used_again_and_not_too_often(programs: Path, freestone_library: Path) -> None:
    """There are 48 of the smaller ones; 32 blocks are served in a row, and then one in two milliseconds."""
    counts = told(freestone_library, "guard=1", programs, "pair", "5000")
    assert 32 <= counts["guarded"] < 2500
    assert counts["unguarded"] > 0


def test_processes_draw_other_blocks(programs: Path, freestone_library: Path) -> None:
    first = [told(freestone_library, "guard=10", programs, "first", "0") for _ in range(16)]
    assert len(set(first)) >= 4, first


def test_a_planted_overflow_is_found_as_often_as_theory_says(programs: Path, freestone_library: Path) -> None:
    """One bad block of a hundred: the first, one in the middle, the last. Found when it is drawn and has a place.

    It is drawn with one chance in five. That more than 31 were drawn before, so that it may have no place, has less
    than one in two hundred, and only for the last.
    """
    runs, every = 900, 5
    with ThreadPoolExecutor() as pool:
        options, count = f"guard={every}", str(runs)
        at = ["0", "50", "99"]
        found = list(pool.map(lambda bad: told(freestone_library, options, programs, "planted", count, bad), at))
    before = [comb(99, drawn) * (1 / every) ** drawn * (1 - 1 / every) ** (99 - drawn) for drawn in range(32)]
    least, most = sum(before) / every, 1 / every
    assert least > 0.995 * most
    for seen in found:
        assert deviations(seen, runs, least) >= -5, found
        assert deviations(seen, runs, most) <= 5, found
    # A rate wrong by a third is eight deviations away.
    assert deviations(sum(found), 3 * runs, least) >= -5, found
    assert deviations(sum(found), 3 * runs, most) <= 5, found
