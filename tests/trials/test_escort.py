"""Commands below the escort: how their end is handed on, what they may leave behind, how they are broken off."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from waiting import is_alive, soon

from freestone import native
from freestone.trials import escort
from freestone.trials.escort import Errand

Ended = Callable[..., int]


@pytest.fixture
def ended(tmp_path: Path) -> Ended:
    """Runs a line to its end; its status as :mod:`subprocess` has it."""

    def run(line: str, *, session: bool = True, leaves: bool = False) -> int:
        with (tmp_path / "said").open("wb") as said:
            errand = Errand(line, said, said, directory=str(tmp_path), session=session, leaves=leaves)
            with escort.begun(errand) as begun:
                return begun.process.wait(20)

    return run


@pytest.mark.parametrize("status", [0, 1, 3, 127, 255])
def test_an_exit_status_is_handed_on(ended: Ended, status: int) -> None:
    assert ended(f"exit {status}") == status


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM, signal.SIGUSR2, signal.SIGPIPE])
def test_the_signal_that_ended_it_is_handed_on(ended: Ended, number: int) -> None:
    assert ended(f"kill -{int(number)} $$") == -number


@pytest.mark.parametrize("session", [True, False])
def test_a_command_that_signals_its_group_means_itself(ended: Ended, session: bool) -> None:
    assert ended("kill -USR1 0; sleep 10", session=session) == -signal.SIGUSR1


def test_standard_streams_are_the_command_s(ended: Ended, tmp_path: Path) -> None:
    assert ended("cat; echo out; echo err >&2; ls /proc/$$/fd | wc -l") == 0
    assert (tmp_path / "said").read_text().split() == ["out", "err", "3"], "an empty input, and no other descriptor"
    (tmp_path / "input").write_text("given")
    with (
        (tmp_path / "said").open("wb") as said,
        (tmp_path / "input").open("rb") as given,
        escort.begun(Errand("cat", said, said, given)) as begun,
    ):
        assert begun.process.wait(20) == 0
    assert (tmp_path / "said").read_text() == "given"


@pytest.mark.parametrize("leaves", [True, False])
def test_what_it_leaves_behind_goes_on_where_it_may(ended: Ended, tmp_path: Path, leaves: bool) -> None:
    assert ended("(setsid sleep 600 & echo $! > left); exit 5", leaves=leaves) == 5
    left = int((tmp_path / "left").read_text())
    assert is_alive(left) == leaves
    if leaves:
        os.kill(left, signal.SIGKILL)


def test_a_stop_is_shown_and_can_be_ended(tmp_path: Path) -> None:
    with (
        (tmp_path / "said").open("wb") as said,
        escort.begun(Errand("echo $$; kill -STOP $$", said, said, leaves=True)) as begun,
    ):
        assert os.waitid(os.P_PID, begun.process.pid, os.WSTOPPED | os.WNOWAIT).si_code == os.CLD_STOPPED
        begun.end()
        assert begun.process.returncode is not None
    assert not is_alive(int((tmp_path / "said").read_text()))


def test_an_escort_that_is_told_to_end_ends_all(tmp_path: Path) -> None:
    line = "(setsid sleep 600 & echo $!); sleep 600"
    with (tmp_path / "said").open("wb") as said, escort.begun(Errand(line, said, said, leaves=True)) as begun:
        assert soon(lambda: (tmp_path / "said").read_text() != "")
        begun.process.terminate()
        assert begun.process.wait(20) == 3
    assert not is_alive(int((tmp_path / "said").read_text()))


def test_a_wrong_command_line_is_refused() -> None:
    for words in ([], ["--lifeline"], ["--lifeline", "x", "--", "true"], ["--", "true"], ["--other", "--", "true"]):
        done = subprocess.run([native.path("freestone-escort"), *words], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr.startswith("usage: freestone-escort ")
