"""``freestone compare --settings`` on real programs: what it finds, and wrong use."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from answers import said

from freestone.records import store

Tool = Callable[..., subprocess.CompletedProcess[str]]
CompileC = Callable[..., Path]

CHURN = """
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    for (int i = 0; i < 30; i++) {
        char *matrix = malloc(40 << 20);
        for (int at = 0; at < 40 << 20; at += 65536) ((volatile char *)matrix)[at] = 1;
        free(matrix);
    }
    puts("done");
    return 0;
}
"""
"""Blocks that are too large for glibc's threshold to follow: mapped and unmapped each time."""


@pytest.mark.long
def test_a_setting_that_helps_is_found_and_printed_with_lines_to_copy(
    freestone: Tool, compile_c: CompileC, only_folder: Callable[[], Path]
) -> None:
    churn = compile_c(CHURN, "-fno-builtin", name="churn")
    done = freestone(
        "compare", "--settings", "all", "--goal", "time", "--time-budget", "40", "-a", "glibc", "--", churn
    )
    assert done.returncode == 0, done.stderr
    assert "Tried beside glibc: 12 configurations." in done.stdout
    assert re.search("Best for time: glibc[+](never-map|grow-wide)", " ".join(done.stdout.split()))
    assert "The Pareto front" in done.stdout
    assert "freestone run -a glibc:MALLOC_MMAP_" in done.stdout
    folder = only_folder()
    assert store.read_experiment(folder).racing == "peak_rss_kib"
    told = said(freestone("compare", "--resume", folder, "--json", "--goal", "time"))
    best = told["pareto"]["best"]
    assert best in told["pareto"]["front"]
    cell = next(each for each in told["cells"] if each["configuration"] == best)
    assert cell["ratio"]["wall_s"]["high"] < 0.9


@pytest.mark.long
def test_where_nothing_differs_nothing_is_told_apart(freestone: Tool) -> None:
    words = ("--settings", "arenas-2,thread-cache-1024", "-n", "5", "-a", "glibc", "--", "sleep", "0.02")
    done = freestone("compare", "--no-report", *words)
    assert done.returncode == 0, done.stderr
    assert "Nothing told apart: " in done.stdout
    assert "To use" not in done.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--settings", "arenas-3"], "--settings: there is no setting 'arenas-3'; did you mean arenas-4?"),
        (["--settings", "zzz"], "--settings: there is no setting 'zzz'; there are all, arenas-1, "),
        (["--settings", "narenas-1", "-a", "glibc"], "--settings: no allocator that is compared knows narenas-1"),
        (["--settings", "all", "-a", "nobody"], "unknown allocator 'nobody'"),
        (["--settings", "all", "--command", "ls"], "--settings is for one program, not 2"),
        (["--settings", "all", "--on", "ssh:nowhere"], "--settings"),
        (["--goal", "time"], "--goal is for --settings; give that too, or leave it out"),
        (["--goal", "best", "--settings", "all"], "--goal"),
    ],
)
def test_wrong_use_is_one_line(freestone: Tool, tmp_path: Path, words: list[str], told: str) -> None:
    done = freestone("compare", *words, "--", "true")
    assert done.returncode == 2
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "results").exists()
