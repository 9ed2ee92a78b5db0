"""What a program keeps and costs under the library: resident memory, mappings, faults. Bounds, no measurements.

They are of pages: where the kernel gives folios unasked, these programs have none.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from freestone.doctor import conditions

pytestmark = pytest.mark.xdist_group("measured")  # what they measure or look for, others would disturb

Run = Callable[..., int]


@pytest.fixture(scope="module")
def footprint(freestone_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """``footprint("loop")`` is the number that ``footprint.c`` prints, under libfreestone or, ``alone``, without it."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    program = tmp_path_factory.mktemp("footprint") / "footprint"
    source = Path(__file__).with_name("footprint.c")
    subprocess.run([compiler, "-O1", "-D_GNU_SOURCE", "-pthread", "-o", program, source], check=True)

    def run(scenario: str, *before: str, alone: bool = False) -> int:
        kept = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "FREESTONE_OPTIONS")}
        environment = kept if alone else {**kept, "LD_PRELOAD": str(freestone_library)}
        command = [*before, str(program), scenario]
        with conditions.no_huge_pages():
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    return run


def test_an_empty_program_is_within_308_kib_of_glibc(footprint: Run) -> None:
    """By means: which pages of libc the kernel maps around a fault hangs on its random address, 100 KiB a run."""
    more: list[int] = []
    while True:
        more += (footprint("nothing") - footprint("nothing", alone=True) for _ in range(150))
        mean, error = statistics.mean(more), statistics.stdev(more) / len(more) ** 0.5
        if abs(mean - 308) > 4 * error or len(more) >= 3000:
            break
    assert mean <= 308, f"{mean:.0f} +- {error:.0f} KiB more than without the library, of {len(more)} runs"


def test_the_caches_of_many_threads_are_bounded_together(footprint: Run) -> None:
    """docs/design/thread-cache.md: about 32 MiB, however many threads there are; their stacks are in the figure."""
    assert footprint("caches") < 32 * 1024


def test_threads_that_worked_in_turn_are_bounded_together_in_medium_classes(footprint: Run) -> None:
    """docs/design/thread-cache.md: room for 48 MiB; with the stacks of 192 threads, and what slabs hold."""
    assert footprint("medium-caches") < 64 * 1024


def test_threads_that_worked_in_turn_keep_few_large_blocks(footprint: Run) -> None:
    """Two blocks of each class above 64 KiB would be 2.5 MiB for each of 192 threads."""
    assert footprint("large-caches") < 64 * 1024


def test_random_frees_leave_few_mappings(footprint: Run) -> None:
    """The kernel allows 65,530; a heap of 64 GiB has 256 times as much memory as this one."""
    assert footprint("mappings") < 200


def test_a_block_that_doubles_is_not_there_twice(footprint: Run) -> None:
    assert footprint("growth") < 1.1 * 512 * 1024


def test_a_loop_over_one_block_takes_no_faults(footprint: Run) -> None:
    assert footprint("loop") < 100, "in 1000 turns of 256 pages each"


def test_it_serves_where_addresses_are_not_random(footprint: Run) -> None:
    if shutil.which("setarch") is None or subprocess.run(["setarch", "-R", "true"], capture_output=True).returncode:
        pytest.skip("needs setarch (package util-linux), and a kernel that lets it choose")
    assert footprint("mappings", "setarch", "-R") < 200
