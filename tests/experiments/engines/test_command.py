"""The command that carries out an order: its lines are heard, and it ends at a stop or with the connection."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import others_modules
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.experiments.engines import Carried, Unreachable, archive, command, engine_of
from freestone.records.schema import Order


@given(st.lists(st.text(min_size=1), max_size=5))
def test_the_order_reaches_the_place_word_by_word(more: list[str]) -> None:
    order = Order(id="x", created_at="", freestone_version="", words=["compare", *more], places=[])
    assert command.words(order, "there") == ["compare", "--into", "there", "--no-report", *more]
    suites = order.model_copy(update={"words": ["bench", *more]})
    assert command.words(suites, "there") == ["bench", "--into", "there", *more], "it writes no report anyway"


def test_output_lines_and_status_are_kept() -> None:
    told: list[str] = []
    line = "cat; echo one >&2; echo >&2; head -c 200000 /dev/zero | tr '\\0' x >&2; echo >&2; echo two >&2; exit 3"
    carried = command.run(["sh", "-c", line], threading.Event(), tell=told.append, given=b"all of it")
    assert carried == Carried(3, "two", b"all of it")
    assert told[0] == "one"
    assert max(map(len, told)) <= 1 << 16, "a line without end comes in pieces"


def test_more_output_than_an_archive_may_have_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_BYTES", 1 << 20)
    with pytest.raises(Unreachable, match="sends more than 1 MiB"):
        command.run(["cat", "/dev/zero"], threading.Event())
    with pytest.raises(Unreachable, match="nonesuch cannot be started: No such file"):
        command.run(["nonesuch"], threading.Event())


@pytest.mark.parametrize(("at_stop", "status"), [("terminate", -15), ("close", 0), ("wait", -9)])
def test_a_stop_ends_a_command(monkeypatch: pytest.MonkeyPatch, at_stop: str, status: int) -> None:
    monkeypatch.setattr(command, "STOP_S", 1.0 if at_stop == "wait" else 60.0)
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    words = ["cat"] if at_stop == "close" else ["sleep", "600"]
    assert command.run(words, stop, at_stop=at_stop).status == status  # type: ignore[arg-type]  # as parametrized


def test_a_held_command_ends_with_its_holder(tmp_path: Path) -> None:
    ended = tmp_path / "ended"
    line = command.held(f"sh -c 'trap \"touch {ended}; exit 5\" TERM; echo up; while :; do sleep 0.05; done'")
    with subprocess.Popen(["sh", "-c", line], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"up\n"
        process.stdin.close()
        assert process.wait(30) == 5
    assert ended.exists()
    with subprocess.Popen(["sh", "-c", command.held("sh -c 'cat; exit 7'")], stdin=subprocess.PIPE) as process:
        assert process.wait(30) == 7, "it has no input"


def test_modules_of_the_folder_are_not_the_labs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others_modules.put_into(tmp_path)
    done = subprocess.run(command.lab("allocators"), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for isolated, option in ((0, "-P"), (1, "-I")):
        monkeypatch.setattr(sys, "flags", SimpleNamespace(isolated=isolated))
        assert command.lab()[1:] == [option, "-m", "freestone"]


def test_an_account_without_a_home_starts_at_the_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
    assert command.started_in("") == Path("/")
    assert command.started_in(str(tmp_path / "gone")) == Path("/")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert command.started_in(str(tmp_path / "gone")) == tmp_path


def test_copied_results_have_no_engine() -> None:
    with pytest.raises(Unreachable, match="go on where they were measured"):
        engine_of("merged")
