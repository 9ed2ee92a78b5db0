"""Sampled guards: what a person reads when a guarded block was misused, and how often one is."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from pathlib import Path

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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern int freestone_stats_json(char *buffer, size_t size) __attribute__((weak));

/* Blocks of every size class, none of them freed; or each freed at once; or one bug in so many blocks. */
int main(int count, char **arguments) {
    (void)count;
    int planted = !strcmp(arguments[1], "planted"), dropped = !strcmp(arguments[1], "dropped");
    long blocks = strtol(arguments[2], NULL, 10), bug = planted ? strtol(arguments[3], NULL, 10) : -1;
    size_t size = 40;
    for (long i = 0; i < blocks; i++) {
        char *volatile block = malloc(planted ? 40 : size);
        if (i == bug) { block[40] = 1; }
        size = size * 7919 % 3001 + 1;
        if (planted || dropped) { free(block); }
    }
    char text[1024];
    freestone_stats_json(text, sizeof text);
    puts(text);
    return 0;
}
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("guarded")
    for name, text in (("bugs", BUGS), ("counts", COUNTS)):
        (folder / f"{name}.c").write_text(text)
        subprocess.run(
            ["gcc", "-O1", "-g", "-fno-builtin", "-rdynamic", f"{name}.c", "-o", name], cwd=folder, check=True
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
    heads = [each.removeprefix("freestone: ") for each in said[1:] if not each.startswith("freestone:   #")]
    assert [head.split(" by thread ")[0] for head in heads] == traces
    assert ended.stderr.count(" in make+") == 1
    assert ended.stderr.count(" in drop+") == {"twice": 2, "inside": 1}.get(bug, bug.endswith("-after"))
    if ending == signal.SIGSEGV:
        first = said[2]
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


def stats(library: Path, options: str, programs: Path, *words: str) -> dict[str, int]:
    ended = run(library, options, str(programs / "counts"), *words)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.mark.parametrize("every", [1, 2, 7, 100, 1000])
def test_one_in_so_many_is_sampled(programs: Path, freestone_library: Path, every: int) -> None:
    """Blocks that stay: each allocation is drawn with one chance in ``every``, whatever serves it."""
    blocks = 200_000
    told = stats(freestone_library, f"guard={every}", programs, "kept", str(blocks))
    sampled = told["guarded"] + told["unguarded"]
    expected = blocks / every
    spread = (expected * (1 - 1 / every)) ** 0.5
    assert abs(sampled - expected) <= 5 * spread + 50, f"{sampled} of {blocks}, {expected:.0f} expected"
    assert told["guarded"] >= min(30, expected / 2)


def test_places_are_used_again_and_not_too_often(programs: Path, freestone_library: Path) -> None:
    """There are 48 of the smaller ones; 32 blocks are served in a row, and then one in two milliseconds."""
    told = stats(freestone_library, "guard=1", programs, "dropped", "5000")
    assert 32 <= told["guarded"] < 2500
    assert told["unguarded"] > 0


def test_a_planted_overflow_is_found_as_often_as_theory_says(programs: Path, freestone_library: Path) -> None:
    """One bad block in a hundred, another in each run: each is guarded with one chance in ten, and then found."""
    runs, every = 300, 10
    found = 0
    for number in range(runs):
        # Freed at once, a block is taken again and again from a magazine's top: it counts as taken once.
        ended = run(freestone_library, f"guard={every}", str(programs / "counts"), "planted", "1", "0")
        assert ended.returncode in (0, -signal.SIGABRT), (number, ended.stderr)
        found += ended.returncode != 0
    expected = runs / every
    assert abs(found - expected) <= 5 * (expected * (1 - 1 / every)) ** 0.5
