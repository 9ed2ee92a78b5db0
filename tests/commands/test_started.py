"""Every verb in a process of its own, as its users start it; most tests of the verbs fork one that has begun."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from freestone.cli import VERBS

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("started")]  # what they share is made once

Tool = Callable[..., subprocess.CompletedProcess[str]]

MEASURE = ("-a", "glibc", "-n", "1")
CALLS: dict[str, tuple[str, ...]] = {
    "compare": (*MEASURE, "--", "true"),
    "bench": ("patterns", "--quick", *MEASURE, "--only", "lifo-16-100"),
    "doctor": ("--observe-only", "--", "true"),
    "list": ("--results", "one"),
    "report": ("one",),
    "diff": ("one", "one"),
    "run": ("--", "sh", "-c", "echo $LD_PRELOAD; exit 7"),
    "allocators": ("glibc,freestone",),
}
MEASURING = ("compare", "doctor", "bench")
"""Verbs whose output differs from run to run."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a results folder called ``one`` is."""
    place = tmp_path_factory.mktemp("started")
    words = [sys.executable, "-m", "freestone", "compare", "--no-report", *MEASURE, "--results", "results", "--", "ls"]
    subprocess.run(words, cwd=place, capture_output=True, check=True)
    (made,) = (place / "results").iterdir()
    return made.rename(place / "one").parent


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_says_the_same_started_and_forked(
    verb: str, folder: Path, command: list[str], environment: dict[str, str], freestone: Tool
) -> None:
    forked = freestone(verb, *CALLS[verb], cwd=folder)
    started = subprocess.run(
        [*command, verb, *CALLS[verb]],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert started.returncode == forked.returncode, started.stderr
    assert started.returncode in (0, 3, 7), started.stderr
    if verb not in MEASURING:
        assert started.stdout == forked.stdout != ""
        assert started.stderr == forked.stderr
