"""Many threads that sleep neither slow one that works, counted in instructions by callgrind, nor keep much."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import callgrind
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

WORKERS = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 600, CLASSES = 20, OF_A_CLASS = 64 };

static pthread_barrier_t asleep;
static pthread_mutex_t in_turn = PTHREAD_MUTEX_INITIALIZER;

static long resident_kib(void) {
    char text[128] = {0};
    FILE *file = fopen("/proc/self/statm", "r");
    fgets(text, sizeof text, file);
    fclose(file);
    return strtol(strchr(text, ' '), NULL, 10) * (sysconf(_SC_PAGESIZE) / 1024);
}

static void *work_and_sleep(void *unused) {
    pthread_mutex_lock(&in_turn);
    for (size_t i = 0, size = 16; i < 2 * CLASSES; i++, size = i == CLASSES ? 16 : size + size / 3 + 8) {
        void *held[OF_A_CLASS];
        size_t count = 16384 / size < OF_A_CLASS ? 16384 / size + 1 : OF_A_CLASS;
        for (size_t b = 0; b < count; b++) {
            held[b] = memset(malloc(size), 1, size);
        }
        for (size_t b = 0; b < count; b++) {
            free(held[b]);
        }
    }
    pthread_mutex_unlock(&in_turn);
    pthread_barrier_wait(&asleep);
    for (;;) {
        pause();
    }
    return unused;
}

int main(void) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_barrier_init(&asleep, NULL, THREADS + 1);
    long before = resident_kib();
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &small, work_and_sleep, NULL) != 0) {
            return 1;
        }
    }
    pthread_barrier_wait(&asleep);
    sleep(3);
    printf("%ld\\n", (resident_kib() - before) / THREADS);
    fflush(stdout);
    _exit(0);
}
"""
KEPT_MOST_KIB = 90
"""For each; 20 of them are its stack and what libc has of it. 152 while threads kept what they no longer used."""


@pytest.mark.long
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_sleeping_threads_keep_little_of_what_they_worked_with(freestone_library: Path, tmp_path: Path) -> None:
    """Twenty classes twice: of many threads each gives up the magazines that it does not use at the moment."""
    program = _compiled(WORKERS, tmp_path)
    environment = {**os.environ, "LD_PRELOAD": str(freestone_library)}
    result = subprocess.run([str(program)], env=environment, capture_output=True, text=True, check=True)
    assert int(result.stdout) <= KEPT_MOST_KIB


@pytest.mark.long
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind (package valgrind)")
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_sleeping_threads_do_not_slow_one_that_works(freestone_library: Path, tmp_path: Path) -> None:
    """Magazines are shared out among the threads that use them, not among those that exist."""
    program = _compiled(SOURCE, tmp_path)
    alone, among = (_a_turn(freestone_library, program, sleepers) for sleepers in (0, SLEEPERS))
    assert among <= MOST * alone, f"{among:.0f} instructions a turn among {SLEEPERS} sleepers, {alone:.0f} alone"


def _compiled(text: str, folder: Path) -> Path:
    source, program = folder / "asleep.c", folder / "asleep"
    source.write_text(text)
    subprocess.run(["cc", "-O2", "-fno-builtin", "-pthread", str(source), "-o", str(program)], check=True)
    return program


def _a_turn(library: Path, program: Path, sleepers: int) -> float:
    """By the difference of two lengths, both beyond what it takes to warm up."""
    short, long = (_instructions(library, program, turns, sleepers) for turns in (2_000, 6_000))
    return (long - short) / 4_000


def _instructions(library: Path, program: Path, turns: int, sleepers: int) -> int:
    environment = {**os.environ, "LD_PRELOAD": str(library), "FREESTONE_OPTIONS": "keeper=0"}
    command = [str(program), str(turns), str(sleepers)]
    return callgrind.instructions(command, environment, f"--max-threads={SLEEPERS + 10}")
