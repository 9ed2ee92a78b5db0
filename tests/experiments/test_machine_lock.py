"""One ordered measurement at a time on a machine."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from freestone.experiments import Interruption, machine_lock
from freestone.experiments.interruption import TrialBrokenOff


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("FREESTONE_WITNESS", raising=False)


def test_the_second_waits_until_a_signal_and_one_that_is_measured_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    with Interruption() as stop, machine_lock.held(stop, told.append):
        monkeypatch.setenv("FREESTONE_WITNESS", "/tmp")
        with machine_lock.held(stop, told.append):
            assert told == []
        monkeypatch.delenv("FREESTONE_WITNESS")
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with pytest.raises(TrialBrokenOff), machine_lock.held(stop, told.append):
            pass
    assert told == ["another measurement is running on this machine: waits for it"]
    with Interruption() as stop, machine_lock.held(stop, told.append):
        assert len(told) == 1


def test_without_a_cache_nothing_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with Interruption() as stop, machine_lock.held(stop, print):
        pass
