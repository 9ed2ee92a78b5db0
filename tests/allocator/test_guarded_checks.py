"""Sampled guards: what is looked at when a block is freed, where blocks lie, what a program's own handler is told."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

PAGE = 4096

PROGRAM = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "freestone.h"

#pragma weak freestone_stats_read
extern void free_sized(void *block, size_t size) __attribute__((weak));
extern void *new_block(size_t size) __asm__("_Znwm") __attribute__((weak));
extern void delete_sized(void *block, size_t size) __asm__("_ZdlPvm") __attribute__((weak));

static size_t guarded_so_far(void) {
    struct freestone_stats stats;
    freestone_stats_read(&stats);
    return stats.guarded;
}

/* The next that is guarded: many in a row are not. */
static unsigned char *guarded(void *(*make)(size_t), size_t size) {
    for (;;) {
        size_t before = guarded_so_far();
        unsigned char *block = make(size);
        if (guarded_so_far() != before) { return block; }
        free(block);
        usleep(2000);
    }
}

/* One that lies at the end of its page, or at the start. */
static unsigned char *guarded_at(int end, size_t size) {
    for (int tries = 0; tries < 100; tries++) {
        unsigned char *block = guarded(malloc, size);
        if (((uintptr_t)block % 4096 != 0) == end) { return block; }
        free(block);
    }
    puts("never there");
    exit(1);
}

static unsigned char *closed, *block;

static void own_handler(int number, siginfo_t *info, void *context) {
    ucontext_t *machine = context;
    int ours = info->si_signo == number && info->si_addr == closed + 123 && info->si_code == SEGV_ACCERR;
    int stack = (uintptr_t)machine > (uintptr_t)&number - 65536 && machine->uc_stack.ss_flags >= 0;
#if defined(__x86_64__)
    uintptr_t at = (uintptr_t)machine->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    uintptr_t at = (uintptr_t)machine->uc_mcontext.pc;
#else
    uintptr_t at = (uintptr_t)own_handler;
#endif
    int code = at - (uintptr_t)own_handler + 65536 < 131072; /* in this program */
    (void)!write(1, ours && stack && code ? "told\n" : "not told\n", ours && stack && code ? 5 : 9);
    mprotect(closed, 4096, PROT_READ | PROT_WRITE);
}

int main(int count, char **arguments) {
    const char *what = arguments[1];
    long number = count > 2 ? strtol(arguments[2], NULL, 10) : 0;
    if (!strcmp(what, "before")) {
        block = guarded_at(1, 40);
        block[-number] ^= 1;
        free(block);
    } else if (!strcmp(what, "behind")) {
        block = guarded_at(0, 40);
        block[40 + number - 1] ^= 1;
        free(block);
    } else if (!strcmp(what, "free_sized")) {
        free_sized(guarded(malloc, 40), (size_t)number);
    } else if (!strcmp(what, "delete")) {
        delete_sized(guarded(new_block, 40), (size_t)number);
    } else if (!strcmp(what, "places")) {
        static void *seen[300];
        for (long i = 0; i < number; i++) {
            seen[i] = guarded(malloc, 40);
            free(seen[i]);
        }
        for (long i = 0; i < number; i++) { printf("%p\n", seen[i]); }
    } else if (!strcmp(what, "handler")) {
        struct sigaction action = {.sa_sigaction = own_handler, .sa_flags = SA_SIGINFO};
        closed = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        sigaction(SIGSEGV, &action, NULL);
        block = guarded(malloc, 40); /* whoever is found there then is next */
        *(volatile unsigned char *)(closed + 123) = 1;
    }
    puts("alive");
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    folder = tmp_path_factory.mktemp("guarded_checks")
    (folder / "checks.c").write_text(PROGRAM)
    include = repository / "allocator" / "include"
    subprocess.run(["gcc", "-O1", "-fno-builtin", f"-I{include}", "checks.c", "-o", "checks"], cwd=folder, check=True)
    return folder / "checks"


def run(library: Path, program: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {"LD_PRELOAD": str(library), "FREESTONE_OPTIONS": "guard=1", "LC_ALL": "C"}
    return subprocess.run([program, *words], env=environment, capture_output=True, text=True, check=False, timeout=60)


def places(library: Path, program: Path, blocks: int) -> list[int]:
    """Addresses of blocks that were guarded, each free when the next was taken."""
    return [int(line, 16) for line in run(library, program, "places", str(blocks)).stdout.splitlines()[:blocks]]


@pytest.mark.parametrize("distance", [1, 16, 2000, 4048])
def test_what_was_written_before_a_block_is_found_when_it_is_freed(
    program: Path, freestone_library: Path, distance: int
) -> None:
    """A block of 40 bytes at the end of its page begins at byte 4,048 of it."""
    ended = run(freestone_library, program, "before", str(distance))
    assert ended.returncode == -signal.SIGABRT, ended.stdout
    bytes_before = "1 byte" if distance == 1 else f"{distance} bytes"
    line = (
        rf"freestone: underflow: pointer 0x\w+, {bytes_before} before a block of 40 bytes at 0x\w+, was written before"
    )
    assert re.match(line, ended.stderr), ended.stderr


@pytest.mark.parametrize("distance", [1, 9, 2000, 4056])
def test_what_was_written_behind_a_block_is_found_when_it_is_freed(
    program: Path, freestone_library: Path, distance: int
) -> None:
    """A block at the start of its page has all the rest of it behind it."""
    ended = run(freestone_library, program, "behind", str(distance))
    assert ended.returncode == -signal.SIGABRT, ended.stdout
    behind = "1 byte" if distance == 1 else f"{distance} bytes"
    line = rf"freestone: overflow: pointer 0x\w+, {behind} behind the end of a block of 40 bytes at 0x\w+, was written"
    assert re.match(line, ended.stderr), ended.stderr


@pytest.mark.parametrize("how", ["free_sized", "delete"])
@pytest.mark.parametrize("told", [0, 39, 41, 48])
def test_a_block_freed_with_another_size_is_reported(
    program: Path, freestone_library: Path, how: str, told: int
) -> None:
    ended = run(freestone_library, program, how, str(told))
    assert ended.returncode == -signal.SIGABRT, ended.stdout
    line = rf"freestone: wrong size: pointer 0x\w+, byte 0 of a block of 40 bytes at 0x\w+, freed as one of {told} "
    line += r"\(kinds=0 leaves this check out\)\n"
    assert re.match(line, ended.stderr), ended.stderr


@pytest.mark.parametrize("how", ["free_sized", "delete"])
def test_a_block_freed_with_its_size_is_not_reported(program: Path, freestone_library: Path, how: str) -> None:
    ended = run(freestone_library, program, how, "40")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "alive\n", "")


def test_guarded_blocks_lie_at_either_end_of_any_place(program: Path, freestone_library: Path) -> None:
    """At the start of its page or at the end, and in which place, by chance; each is free when the next is taken."""
    blocks = 200
    addresses = places(freestone_library, program, blocks)
    assert len({address % PAGE for address in addresses}) == 2
    at_start = sum(address % PAGE == 0 for address in addresses)
    assert abs(at_start - blocks / 2) < 5 * (blocks / 4) ** 0.5, f"{at_start} of {blocks} at the start"
    pages = [address // PAGE for address in addresses]
    assert len(set(pages)) > 30  # of 48
    steps = Counter(after - before for before, after in pairwise(pages))
    assert steps.most_common(1)[0][1] < blocks / 5, steps  # one in 48 of each that is 0


def test_processes_guard_in_other_places(program: Path, freestone_library: Path) -> None:
    """What is drawn is another in each process."""
    first = set()
    for _ in range(6):
        addresses = places(freestone_library, program, 8)
        first.add(tuple(address - addresses[0] for address in addresses))
    assert len(first) == 6


def test_the_programs_own_handler_is_told_of_the_fault(program: Path, freestone_library: Path) -> None:
    """It was set with SA_SIGINFO before a block was guarded: it has the address, and the context, of what faulted."""
    ended = run(freestone_library, program, "handler")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "told\nalive\n", "")
