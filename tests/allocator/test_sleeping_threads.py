"""A thread that works is served as quickly among many that sleep as alone: counted in instructions, by callgrind."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SLEEPERS = 600
MOST = 1.3
"""Times as many instructions for a pair of malloc and free."""

SOURCE = """
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_barrier_t asleep;

static void *sleep_on(void *unused) {
    void *volatile block = malloc(100);
    free(block);
    pthread_barrier_wait(&asleep);
    for (;;) {
        pause();
    }
    return unused;
}

int main(int count, char **words) {
    enum { HELD = 64 };
    static const size_t sizes[] = {24, 64, 200, 500, 1000};
    long turns = atol(words[1]), sleepers = count > 2 ? atol(words[2]) : 0;
    void *held[HELD];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_barrier_init(&asleep, NULL, (unsigned)sleepers + 1);
    for (long i = 0; i < sleepers; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &small, sleep_on, NULL) != 0) {
            return 1;
        }
    }
    pthread_barrier_wait(&asleep);
    for (long turn = 0; turn < turns; turn++) {
        for (int i = 0; i < HELD; i++) {
            held[i] = malloc(sizes[turn % 5]);
        }
        for (int i = 0; i < HELD; i++) {
            free(held[i]);
        }
    }
    _exit(0);
}
"""


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind (package valgrind)")
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_sleeping_threads_do_not_slow_one_that_works(freestone_library: Path, tmp_path: Path) -> None:
    """Magazines are shared out among the threads that use them, not among those that exist."""
    source = tmp_path / "asleep.c"
    program = tmp_path / "asleep"
    source.write_text(SOURCE)
    subprocess.run(["cc", "-O2", "-fno-builtin", "-pthread", str(source), "-o", str(program)], check=True)
    alone, among = (_a_turn(freestone_library, program, sleepers) for sleepers in (0, SLEEPERS))
    assert among <= MOST * alone, f"{among:.0f} instructions a turn among {SLEEPERS} sleepers, {alone:.0f} alone"


def _a_turn(library: Path, program: Path, sleepers: int) -> float:
    """By the difference of two lengths, both beyond what it takes to warm up."""
    short, long = (_instructions(library, program, turns, sleepers) for turns in (2_000, 6_000))
    return (long - short) / 4_000


def _instructions(library: Path, program: Path, turns: int, sleepers: int) -> int:
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"--max-threads={SLEEPERS + 10}"]
    command += [str(program), str(turns), str(sleepers)]
    environment = {**os.environ, "LD_PRELOAD": str(library), "FREESTONE_OPTIONS": "keeper=0"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    counted = re.search(r"Collected : (\d+)", result.stderr)
    assert counted is not None, result.stderr
    return int(counted[1])
