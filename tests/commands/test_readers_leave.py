"""Whoever reads what a verb says may leave at any time, as head does: nothing measured is lost, and no verdict."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from freestone import cli
from freestone.records import store

pytestmark = pytest.mark.long

Run = Callable[..., int]

FAILING = ("compare", "--no-report", "-n", "1", "-a", "glibc,freestone", "--", "false")


@pytest.fixture(params=["pipe", "unbuffered pipe", "terminal"])
def unread(request: pytest.FixtureRequest, command: list[str], environment: dict[str, str], tmp_path: Path) -> Run:
    """Runs a verb that nobody reads any more; its exit status."""
    more = {"PYTHONUNBUFFERED": "1"} if request.param == "unbuffered pipe" else {}

    def run(*words: str, errors_too: bool = False) -> int:
        reading, writing = os.openpty() if request.param == "terminal" else os.pipe()
        os.close(reading)
        try:
            return subprocess.run(
                [*command, *words],
                cwd=tmp_path,
                env={**environment, **more},
                stdin=subprocess.DEVNULL,
                stdout=writing,
                stderr=writing if errors_too else subprocess.DEVNULL,
                timeout=120,
                check=False,
            ).returncode
        finally:
            os.close(writing)

    return run


@pytest.mark.parametrize("errors_too", [False, True])
def test_what_nothing_could_be_measured_of_is_no_success(unread: Run, tmp_path: Path, errors_too: bool) -> None:
    assert unread(*FAILING, errors_too=errors_too) == 3
    (folder,) = (tmp_path / "results").iterdir()
    assert len(store.read_trials(folder).records) == 3, "the baseline runs twice"
    assert store.read_summary(folder).cells, "what comes behind the table is done too"


def test_who_has_seen_enough_of_a_list_is_no_error(unread: Run) -> None:
    assert unread("list") == 0
    assert unread("--help") == 0
    assert unread("--help", errors_too=True) == 0


def test_a_pipe_of_the_labs_own_ends_it_as_the_signal_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the status of a measurement is not known: 128 + SIGPIPE."""

    def broken(*_: object, **__: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(cli, "build_app", lambda *_, **__: broken)
    assert cli._run(["list"]) == 141
