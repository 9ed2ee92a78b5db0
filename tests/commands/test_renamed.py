"""Verbs of earlier versions say in one line what to type now, and do nothing."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from freestone.cli import VERBS
from freestone.commands import renamed

Tool = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    ("typed", "now", "command"),
    [
        (["score", "results/a b", "--subject", "x"], "report", "report 'results/a b' --subject x"),
        (["score"], "report", "report results/FOLDER"),
        (["score", "--help"], "report", "report results/FOLDER"),
        (["gate", "one", "two", "--max-rss", "5%", "--strict"], "diff", "diff one two --max-rss 5% --strict"),
        (["peers"], "allocators", "allocators"),
        (["peers", "list", "snmalloc"], "allocators", "allocators snmalloc"),
        (["peers", "add", "-j", "2"], "allocators", "allocators add -j 2"),
        (["peers", "remove", "all"], "allocators", "allocators remove all"),
        (["calls", "one", "--only", "loop-*"], "count --calls", "count --calls one --only 'loop-*'"),
        (["instructions", "one"], "count --instructions", "count --instructions one"),
    ],
)
def test_an_old_verb_says_the_new_command_line(
    freestone: Tool, tmp_path: Path, typed: list[str], now: str, command: str
) -> None:
    before = sorted(tmp_path.rglob("*"))
    done = freestone(*typed)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"freestone: '{typed[0]}' is now '{now}': freestone {command}\n"
    assert sorted(tmp_path.rglob("*")) == before


def test_what_is_said_leads_to_a_verb_that_there_is() -> None:
    old = ("score", "gate", "peers", "calls", "instructions")
    for verb in old:
        line = renamed.told([verb]) or ""
        assert shlex.split(line.partition("': ")[2])[1] in VERBS
        assert verb not in VERBS
    assert all(renamed.told([verb]) is None for verb in (*VERBS, "scores", "no-verb"))
    assert renamed.told([]) is None


def test_help_knows_no_old_verb(freestone: Tool) -> None:
    said = freestone("--help").stdout
    first = [line.split()[0] for line in said.splitlines() if line.startswith("  ") and line.split()]
    assert not {"score", "gate", "peers", "calls", "instructions"} & {word.strip("│ ") for word in first}
