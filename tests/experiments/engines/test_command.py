"""The command that carries out an order: heard, ended when asked to, and never left behind by whoever is gone."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import others_modules
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.experiments.engines import command, limits
from freestone.records.schema import Order


@given(st.lists(st.text(min_size=1), max_size=5))
def test_the_order_reaches_the_place_word_by_word(more: list[str]) -> None:
    order = Order(id="x", created_at="", freestone_version="", words=["compare", *more], places=[])
    assert command.words(order, "there") == ["compare", "--into", "there", "--no-report", *more]
    suites = order.model_copy(update={"words": ["bench", *more]})
    assert command.words(suites, "there") == ["bench", "--into", "there", *more], "it writes no report anyway"


def test_each_line_is_told_and_the_last_is_kept() -> None:
    told: list[str] = []
    carried = command.run(["sh", "-c", "echo one >&2; echo >&2; echo two >&2; exit 3"], told.append, threading.Event())
    assert (carried.status, carried.last) == (3, "two")
    assert told == ["one", "two"]


def test_a_line_without_end_is_told_in_pieces() -> None:
    told: list[str] = []
    endless = f"head -c {3 * limits.MOST_TOLD_BYTES} /dev/zero | tr '\\0' x >&2"
    carried = command.run(["sh", "-c", endless], told.append, threading.Event())
    assert [len(each) for each in told] == [limits.MOST_TOLD_BYTES] * 3
    assert carried.last == told[-1]


def test_whoever_asks_to_stop_is_heard() -> None:
    stop = threading.Event()
    stop.set()
    began = time.monotonic()
    assert command.run(["sleep", "60"], lambda line: None, stop).status < 0
    assert time.monotonic() - began < 30


def test_what_is_held_ends_with_its_holder(tmp_path: Path) -> None:
    ended = tmp_path / "ended"
    line = command.held(f"sh -c 'trap \"touch {ended}; exit 5\" TERM; echo up; while :; do sleep 0.05; done'")
    with subprocess.Popen(["sh", "-c", line], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"up\n"
        process.stdin.close()
        assert process.wait(30) == 5
    assert ended.exists()


def test_what_is_held_has_its_own_status_and_no_input() -> None:
    line = command.held("sh -c 'cat; exit 7'")
    with subprocess.Popen(["sh", "-c", line], stdin=subprocess.PIPE) as process:
        assert process.wait(30) == 7


def test_modules_of_the_folder_are_not_the_labs(tmp_path: Path) -> None:
    others_modules.put_into(tmp_path)
    done = subprocess.run(command.lab("allocators"), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    other = [word for word in command.lab("allocators") if word not in ("-P", "-I")]
    told = subprocess.run(other, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert others_modules.SAID in told.stderr, "else this test proves nothing"


def test_nothing_is_taken_from_the_environment_where_this_lab_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for isolated, option in ((0, "-P"), (1, "-I")):
        monkeypatch.setattr(sys, "flags", SimpleNamespace(isolated=isolated))
        assert command.lab()[1:] == [option, "-m", "freestone"]


def test_an_account_without_a_home_starts_at_the_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
    assert command.started_in("") == Path("/")
    assert command.started_in(str(tmp_path / "gone")) == Path("/")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert command.started_in(str(tmp_path / "gone")) == tmp_path
