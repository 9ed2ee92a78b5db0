"""Orders that meet on one machine measure one after the other, and whoever ends lets the next begin."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from waiting import soon

from freestone.experiments import turns

HOLDS = """
import sys, time
from pathlib import Path
from freestone.experiments import turns
with turns.taken(lambda: False, lambda line: print(line, file=sys.stderr, flush=True)):
    with open("log", "a") as log: print("begins", file=log)
    while not Path("go").exists(): time.sleep(0.01)
    with open("log", "a") as log: print("ends", file=log)
"""

OF_NOBODY = """
import os, sys
parent = os.getpid()
if os.fork(): os._exit(0)
while os.getppid() == parent: pass
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""Starts a command and is gone: who has started the command is known no more."""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache" / "freestone"


def test_one_after_the_other_and_whoever_waits_says_so_once(cache: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-c", HOLDS]
    sessions = [subprocess.Popen(words, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    log = tmp_path / "log"
    assert soon(log.exists, 60)
    (tmp_path / "go").touch()
    said = [session.communicate(timeout=60)[1] for session in sessions]
    assert log.read_text().split() == ["begins", "ends"] * 3
    assert all(each.count("this very machine") <= 1 for each in said)
    assert list(cache.iterdir()) == [], "nothing is left behind"


def test_one_that_is_killed_lets_the_next_begin(cache: Path, tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDS]) as session:
        assert soon((tmp_path / "log").exists, 60)
        told: list[str] = []
        with turns.taken(lambda: bool(told), told.append):
            assert len(told) == 1, "it is waited for until somebody asks to stop"
        session.kill()
    with turns.taken(lambda: False, told.append):
        assert len(told) == 1


def test_a_program_that_is_measured_does_not_wait_for_the_one_that_measures_it(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    words = ["sh", "-c", '"$@"; exit $?', "sh", sys.executable, "-c", HOLDS]
    with turns.taken(lambda: False, pytest.fail):
        done = subprocess.run(words, stderr=subprocess.PIPE, text=True, timeout=60, check=True)
        assert done.stderr == ""
        (held,) = cache.iterdir()
        with subprocess.Popen([sys.executable, "-c", OF_NOBODY, *words], stderr=subprocess.PIPE, text=True) as other:
            assert other.stderr is not None
            assert "waits until it has measured" in other.stderr.readline(), "one that nobody measures does wait"
            assert held.exists()
    assert soon(lambda: (tmp_path / "log").read_text().split() == ["begins", "ends"] * 2, 60)


def test_where_no_lock_can_be_had_it_is_measured_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    told: list[str] = []
    with turns.taken(lambda: False, told.append):
        assert told == []
