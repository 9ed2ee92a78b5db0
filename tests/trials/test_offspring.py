"""Nothing the lab starts is left behind: neither what leaves its parents, nor what is begun as Ctrl-C arrives."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from waiting import is_alive, soon

from freestone.records.schema import Workload
from freestone.trials import launch, run_stage
from freestone.trials.launch import LaunchRequest, ResultLost
from freestone.trials.offspring import Offspring

MARK = "/one-run-s-folder"

LEAVERS = {
    "child": "sleep 600 & echo $!",
    "session": "setsid sleep 600 & echo $!",
    "daemon": "(setsid sleep 600 & echo $!)",
    "daemon of a session": "setsid sh -c '(sleep 600 & echo $!)'",
}


@pytest.fixture
def shell(tmp_path: Path) -> Callable[[str], subprocess.Popen[bytes]]:
    def start(line: str) -> subprocess.Popen[bytes]:
        with (tmp_path / "said").open("wb") as said:
            environment = {**os.environ, "OF": MARK}
            return subprocess.Popen(["/bin/sh", "-c", line], stdout=said, process_group=0, env=environment)

    return start


def said(tmp_path: Path) -> int:
    file = tmp_path / "said"
    assert soon(lambda: file.exists() and file.read_text().endswith("\n")), "it has begun"
    return int(file.read_text().split()[0])


@pytest.mark.parametrize("leaver", LEAVERS.values(), ids=LEAVERS)
@pytest.mark.parametrize("ended", [False, True], ids=["runs", "has ended"])
def test_what_breaks_off_ends_all_that_came_of_it(shell, tmp_path, leaver: str, ended: bool) -> None:
    children = []

    def broken_off() -> None:
        with Offspring.begun(lambda: shell(leaver if ended else f"{leaver}; sleep 600"), MARK) as begun:
            children.append(said(tmp_path))
            if ended:
                begun.process.wait()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken_off()
    assert not is_alive(children[0])


@pytest.mark.parametrize("mark", [None, MARK], ids=["unmarked", "marked"])
def test_what_is_below_in_a_session_of_its_own_has_ended_with_it(shell, tmp_path, mark: str | None) -> None:
    def broken_off() -> None:
        with Offspring.begun(lambda: shell("setsid sh -c 'sleep 600 & echo $!; wait' & wait"), mark):
            said(tmp_path)
            raise KeyboardInterrupt

    for _ in range(10):
        (tmp_path / "said").unlink(missing_ok=True)
        with pytest.raises(KeyboardInterrupt):
            broken_off()
        assert not is_alive(said(tmp_path))


def test_what_was_there_before_and_what_is_left_in_peace_go_on(shell, tmp_path) -> None:
    """As a server does that a setup has started."""
    with Offspring.begun(lambda: shell("(setsid sleep 600 & echo $!)")) as begun:
        daemon = said(tmp_path)
        begun.process.wait()
    (tmp_path / "said").unlink()
    with Offspring.begun(lambda: shell("sleep 600 & echo $!; wait")) as begun:
        child = said(tmp_path)
        begun.end()
    assert is_alive(daemon)
    assert not is_alive(child)
    os.kill(daemon, signal.SIGKILL)


def test_whose_origin_is_another_is_left_in_peace(shell, tmp_path) -> None:
    """A database that a setup has started may leave its parents as late as in the middle of a run."""
    late = subprocess.Popen(["/bin/sh", "-c", f"sleep 0.2; setsid sleep 600 & echo $! > {tmp_path}/late; exit 0"])
    with Offspring.begun(lambda: shell("sleep 600 & echo $!; wait"), MARK) as begun:
        child = said(tmp_path)
        late.wait()
        assert soon(lambda: (tmp_path / "late").exists() and (tmp_path / "late").read_text() != "")
        begun.end()
    daemon = int((tmp_path / "late").read_text())
    assert is_alive(daemon)
    assert not is_alive(child)
    os.kill(daemon, signal.SIGKILL)


def test_a_daemon_s_end_can_be_waited_for(tmp_path: Path) -> None:
    """By a script that asks until there is no such process: nobody may keep it as a zombie."""
    begin, end = (
        "setsid sleep 600 & echo $! > d",
        "kill -9 $(cat d); while kill -0 $(cat d) 2>/dev/null; do sleep 0.05; done",
    )
    here = Workload(name="work", command=["true"], directory=str(tmp_path))
    assert run_stage("setup", begin, here, timeout_s=20, scratch=tmp_path) is None
    assert run_stage("cleanup", end, here, timeout_s=20, scratch=tmp_path) is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_that_arrives_while_it_is_started_is_heard_and_leaves_nothing(shell, tmp_path, number) -> None:
    begun: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        os.kill(os.getpid(), number)
        begun.append(shell("echo $$; exec sleep 600"))
        os.kill(os.getpid(), number)
        return begun[0]

    with (
        _raising(number),
        pytest.raises(KeyboardInterrupt),
        Offspring.begun(start),
    ):
        pytest.fail("the signal is heard before anything else is done")
    assert begun[0].returncode == -signal.SIGKILL


def test_handlers_stay_as_they_were(shell) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with Offspring.begun(lambda: shell("exit 0")) as begun:
        begun.process.wait()
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_program_that_kills_the_launcher_leaves_none_of_its_processes(tmp_path: Path) -> None:
    request = _request(tmp_path, "setsid sleep 600 & echo $!; (sleep 600 & echo $!); kill -KILL $PPID; sleep 600")
    with pytest.raises(ResultLost, match="SIGKILL"):
        launch.launch(request)
    assert not [each for each in request.stdout.read_text().split() if is_alive(int(each))]


def test_a_launcher_that_was_stopped_is_ended_with_its_program(tmp_path: Path) -> None:
    request = _request(tmp_path, "sleep 600 & echo $!; wait")
    begun_s = time.monotonic()

    def broken_off() -> None:
        with launch.begun(request) as launcher:
            assert soon(lambda: request.stdout.exists() and request.stdout.read_text().endswith("\n"))
            os.kill(launcher.process.pid, signal.SIGSTOP)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken_off()
    assert not is_alive(int(request.stdout.read_text()))
    assert time.monotonic() - begun_s < 10, "it was told to go on, so that it could do its work"


def test_a_result_that_cannot_be_written_is_lost_and_not_the_lab_s_end(tmp_path: Path) -> None:
    """A program that fills the disk, or takes away the folder, has failed alone."""
    (tmp_path / "room").mkdir()
    request = LaunchRequest(
        ["sh", "-c", f"rm -rf '{tmp_path}/room'"], tmp_path / "room" / "result", tmp_path / "out", tmp_path / "err"
    )
    with pytest.raises(ResultLost, match=r"cannot write the result .*No such file or directory"):
        launch.launch(request)


def _request(folder: Path, line: str) -> LaunchRequest:
    mark = {"FREESTONE_WITNESS": str(folder / "reports")}
    words = ["/bin/sh", "-c", line]
    return LaunchRequest(words, folder / "result", folder / "stdout", folder / "stderr", environment=mark)


@contextlib.contextmanager
def _raising(number: signal.Signals) -> Iterator[None]:
    def interrupted(heard: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(number, interrupted)
    try:
        yield
    finally:
        signal.signal(number, before)
