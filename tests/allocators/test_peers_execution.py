"""The commands of a build: how many at a time, what is told of a failure, and that none survives an interrupt."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freestone.allocators.peers.execution import Command, CommandFailed, environment, run


def sh(folder: Path, script: str) -> Command:
    return Command(("sh", "-c", script), folder)


def run_all(folder: Path, *scripts: str, jobs: int = 2) -> None:
    commands = (sh(folder, script) for script in scripts)
    run(commands, jobs=jobs, log=folder / "log", environment=environment(folder))


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_no_more_run_at_a_time_than_allowed(tmp_path: Path, jobs: int) -> None:
    script = "mkdir busy-$$; ls -d busy-* | wc -l >> counts; sleep 0.05; rmdir busy-$$"
    run_all(tmp_path, *[script] * 8, jobs=jobs)
    counts = [int(line) for line in (tmp_path / "counts").read_text().split()]
    assert len(counts) == 8
    assert max(counts) == jobs


def test_the_log_has_every_command_and_what_it_said(tmp_path: Path) -> None:
    run_all(tmp_path, "echo one", "echo two >&2", jobs=1)
    assert (tmp_path / "log").read_text() == "$ sh -c 'echo one'\none\n$ sh -c 'echo two >&2'\ntwo\n"


def test_after_a_failure_none_is_begun(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed):
        run_all(tmp_path, "touch before", "exit 3", "touch after", jobs=1)
    assert (tmp_path / "before").exists()
    assert not (tmp_path / "after").exists()


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (
            "echo compiling; echo 'a.c:1:2: error: no such thing'; echo 'make: stopped'; exit 2",
            "a.c:1:2: error: no such",
        ),
        ("echo 'CMake Error at CMakeLists.txt:1'; exit 1", "CMake Error at"),
        ("echo first; echo last; exit 1", "last"),
        ("exit 7", "exit status 7"),
        ("kill -SEGV $$", "killed by SIGSEGV"),
    ],
)
def test_a_failure_is_told_by_its_most_telling_line(tmp_path: Path, script: str, told: str) -> None:
    with pytest.raises(CommandFailed, match=told) as caught:
        run_all(tmp_path, script)
    assert not caught.value.disk_full
    assert len(str(caught.value).splitlines()) == 1


def test_an_earlier_command_is_not_taken_for_the_cause(tmp_path: Path) -> None:
    run_all(tmp_path, "echo 'error: harmless'")
    with pytest.raises(CommandFailed, match=r"^the cause$"):
        run_all(tmp_path, "echo 'the cause'; exit 1")


def test_a_full_disk_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed) as caught:
        run_all(tmp_path, "echo 'cc1: error: /tmp/x.s: No space left on device'; echo 'more'; exit 1")
    assert caught.value.disk_full


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=300))
@settings(max_examples=30, deadline=None)
def test_whatever_a_command_says_its_failure_is_one_short_line(tmp_path_factory, text: str) -> None:
    folder = tmp_path_factory.mktemp("said")
    (folder / "said").write_text(text)
    with pytest.raises(CommandFailed) as caught:
        run_all(folder, "cat said; exit 1")
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) <= 200


def test_a_program_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match=r"^/nowhere/cc: no such file"):
        run([Command(("/nowhere/cc",), tmp_path)], jobs=1, log=tmp_path / "log", environment={})


def test_an_interrupt_ends_commands_and_their_children(tmp_path: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(KeyboardInterrupt):
            run_all(tmp_path, "sleep 60 & echo $! > child; echo $$ > parent; wait")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    for name in ("parent", "child"):
        assert ended(int((tmp_path / name).read_text()))


def test_the_users_flags_do_not_change_a_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CFLAGS", "CXXFLAGS", "LDFLAGS", "MAKEFLAGS", "LD_PRELOAD"):
        monkeypatch.setenv(name, "-O0")
    monkeypatch.setenv("HTTPS_PROXY", "proxy:1")
    made = environment(tmp_path, {"CC": "cc"})
    assert "-O0" not in made.values()
    assert made["HTTPS_PROXY"] == "proxy:1"
    assert made["CC"] == "cc"
    assert made["TMPDIR"] == str(tmp_path)


def ended(process: int) -> bool:
    for _ in range(100):
        try:
            os.kill(process, 0)
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False
