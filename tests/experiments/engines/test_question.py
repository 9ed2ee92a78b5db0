"""A command that is asked something: heard as long as it says anything, and never waited for longer."""

from __future__ import annotations

import threading
import time

import pytest

from freestone.experiments.engines import Unreachable, limits, question


def test_all_that_is_said_is_heard_whatever_is_given() -> None:
    given = bytes(range(256)) * 4096  # more than a pipe holds, both ways
    answer = question.asked(["sh", "-c", "cat; echo one >&2; echo two >&2; exit 3"], threading.Event(), given=given)
    assert (answer.status, answer.told) == (3, "two")
    assert answer.said == given


def test_one_that_says_nothing_is_waited_for_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question, "SILENT_S", 1.0)
    slow = "for each in 1 2 3 4 5 6; do sleep 0.3; echo $each; done"
    assert question.asked(["sh", "-c", slow], threading.Event()).said == b"1\n2\n3\n4\n5\n6\n"
    began = time.monotonic()
    with pytest.raises(Unreachable, match="sh has said nothing for 1 s"):
        question.asked(["sh", "-c", "echo hello; sleep 100 & sleep 100"], threading.Event())
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("wanted", [False, True])
def test_whoever_asks_to_stop_is_heard(monkeypatch: pytest.MonkeyPatch, wanted: bool) -> None:
    monkeypatch.setattr(question, "STOPPED_S", 0.5)
    stop = threading.Event()
    stop.set()
    began = time.monotonic()
    with pytest.raises(Unreachable, match="has said nothing" if wanted else "interrupted"):
        question.asked(["sleep", "100"], stop, wanted=wanted)
    assert time.monotonic() - began < 30


def test_an_answer_that_is_wanted_is_heard_to_its_end_also_then() -> None:
    stop = threading.Event()
    stop.set()
    answer = question.asked(["sh", "-c", "sleep 0.5; echo fine"], stop, wanted=True)
    assert (answer.status, answer.said) == (0, b"fine\n")


def test_a_stream_that_somebody_else_holds_open_keeps_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the master of a shared connection of ssh does."""
    monkeypatch.setattr(question, "LEFT_OPEN_S", 1.0)
    began = time.monotonic()
    answer = question.asked(["sh", "-c", "sleep 45 & echo fine"], threading.Event())
    assert (answer.status, answer.said) == (0, b"fine\n")
    assert time.monotonic() - began < 30


def test_what_cannot_be_started_is_one_line() -> None:
    with pytest.raises(Unreachable, match="no-such-program: No such file or directory"):
        question.asked(["no-such-program"], threading.Event())


def test_one_that_says_more_than_is_taken_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_BYTES", 1 << 20)
    for endless in ("yes", "yes & exit 0", "head -c 2000000 /dev/zero"):
        with pytest.raises(Unreachable, match="it sends more than 1 MiB, which is not brought here"):
            question.asked(["sh", "-c", endless], threading.Event(), wanted=True)
    said = question.asked(["head", "-c", str(1 << 20), "/dev/zero"], threading.Event()).said
    assert len(said) == 1 << 20


def test_of_what_went_wrong_the_end_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_BYTES", 1 << 10)
    answer = question.asked(["sh", "-c", "yes long | head -c 4000000 >&2; echo last >&2; exit 3"], threading.Event())
    assert (answer.status, answer.told) == (3, "last")
