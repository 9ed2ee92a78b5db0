"""Whoever types an option of hyperfine is told in one line what it is called here."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from freestone.commands.hyperfine_options import HERE, HyperfineOptions

Tool = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-i"], "--ignore-failure is an option of hyperfine; here: --ignore-status "),
        (["--runs", "20"], "--runs is an option of hyperfine; here: -n"),
        (["-w", "3"], "-w is an option of hyperfine; here: --warmup"),
        (["--parameter-list", "level", "1,6,9"], "--parameter-list is an option of hyperfine; here: --scan "),
        (["-P", "threads", "1", "8"], "--parameter-scan is an option of hyperfine; here: --scan "),
        (["-N"], "-N is an option of hyperfine; here: leave it out"),
    ],
)
def test_one_line_says_our_option(freestone: Tool, tmp_path: Path, words: list[str], said: str) -> None:
    done = freestone("compare", *words, "--", "true")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"freestone: {said}")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "results").exists()


def test_every_option_has_its_line_and_the_help_has_what_it_names(freestone: Tool) -> None:
    assert [field.name for field in fields(HyperfineOptions)] == list(HERE)
    said = freestone("compare", "--help").stdout
    for typed, ours in HERE.values():
        assert not re.search(rf"^\W*(?:\S+ +)?{typed}(?![\w-])", said, re.MULTILINE), "it is no option of ours"
        for option in re.findall(r"(?<!\w)--[a-z-]+", ours):
            assert option in said
